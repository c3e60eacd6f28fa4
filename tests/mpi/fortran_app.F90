! A program of each Fortran interface: F08 (module mpi_f08), MODULE (mpi), or neither (mpif.h).
! It calls collectives, checks their results, and stops with 4 if one is wrong.
#ifdef F08
#define HANDLE(name) type(name)
#define IERROR
#else
#define HANDLE(name) integer
#define IERROR , ierror
#endif

program fortran_app
#if defined(F08)
  use mpi_f08
#elif defined(MODULE)
  use mpi
#endif
  implicit none
#if !defined(F08) && !defined(MODULE)
  include 'mpif.h'
#endif
  integer :: rank, ranks, provided, ierror, i, status, total
  integer :: counts(16), places(16), own(16), gathered(136)
  double precision :: mine(1000), summed(1000)
  logical :: wrong
  HANDLE(MPI_Request) :: request
  HANDLE(MPI_Comm) :: pair
  HANDLE(MPI_Op) :: first
  external :: keep_first

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  wrong = provided < MPI_THREAD_SINGLE

  mine = [(dble(rank + i), i = 1, 1000)]
  call MPI_Allreduce(mine, summed, 1000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD IERROR)
  wrong = wrong .or. any(summed /= [(dble(ranks * (ranks - 1) / 2 + ranks * i), i = 1, 1000)])
  call MPI_Allreduce(MPI_IN_PLACE, mine, 1000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  wrong = wrong .or. any(mine /= summed)

  status = merge(42, 0, rank == 1)
  call MPI_Bcast(status, 1, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror)
  wrong = wrong .or. status /= 42

  counts(:ranks) = [(i, i = 1, ranks)]
  places(:ranks) = [(i * (i - 1) / 2, i = 1, ranks)]
  own = rank
  call MPI_Allgatherv(own, rank + 1, MPI_INTEGER, gathered, counts, places, MPI_INTEGER, &
                      MPI_COMM_WORLD, ierror)
  do i = 1, ranks
    wrong = wrong .or. any(gathered(places(i) + 1:places(i) + i) /= i - 1)
  end do

  call MPI_Iallreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierror)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  wrong = wrong .or. total /= ranks * (ranks - 1) / 2

#ifndef F08
  ! Not commutative: the result is that of rank 0.
  call MPI_Op_create(keep_first, .false., first, ierror)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, first, MPI_COMM_WORLD, ierror)
  wrong = wrong .or. total /= 0
  call MPI_Op_free(first, ierror)
#endif

  call MPI_Comm_dup(MPI_COMM_WORLD, pair, ierror)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_MAX, pair, ierror)
  wrong = wrong .or. total /= ranks - 1
  call MPI_Comm_free(pair, ierror)
  wrong = wrong .or. pair /= MPI_COMM_NULL

  if (wrong) print *, 'wrong'
  call MPI_Finalize(ierror)
  if (wrong) stop 4
end program

subroutine keep_first(in, inout, count, datatype)
  implicit none
  integer :: count, datatype, in(count), inout(count)
  inout = in
end subroutine
