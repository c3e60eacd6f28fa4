//! Enums whose variants have names in files and results.

/// Declares an enum with the name of each variant; `NAMES`, `ALL` and `name` follow.
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* $vis:vis enum $Enum:ident {
        $($(#[$note:meta])* $Variant:ident = $name:literal,)*
    }) => {
        $(#[$meta])*
        $vis enum $Enum { $($(#[$note])* $Variant,)* }

        impl $Enum {
            /// The names, in order.
            $vis const NAMES: [&'static str; [$($name),*].len()] = [$($name),*];

            /// All variants, in order.
            $vis const ALL: [$Enum; $Enum::NAMES.len()] = [$($Enum::$Variant),*];

            /// The name in files and results.
            #[must_use]
            $vis fn name(self) -> &'static str {
                $Enum::NAMES[self as usize]
            }
        }
    };
}
