//! Enums whose variants have names in files and results.

/// Declares an enum with the name of each variant; `ALL` and `name` follow.
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* $vis:vis enum $Enum:ident {
        $($(#[$note:meta])* $Variant:ident = $name:literal,)*
    }) => {
        $(#[$meta])*
        $vis enum $Enum { $($(#[$note])* $Variant,)* }

        impl $Enum {
            /// All variants, in order.
            $vis const ALL: [$Enum; [$($name),*].len()] = [$($Enum::$Variant),*];

            /// The name in files and results.
            #[must_use]
            $vis fn name(self) -> &'static str {
                match self { $($Enum::$Variant => $name,)* }
            }
        }
    };
}
