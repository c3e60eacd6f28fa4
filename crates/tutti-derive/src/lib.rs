//! Derives for enums: [`macro@Refusal`] for errors, [`macro@Named`] for names in files and results.
#![deny(unsafe_code)]

use proc_macro::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Fields, LitStr, Result, Variant};

/// Derives `Refusal`. `#[refusal(class = "...")]` sets the exception class of the enum or of one
/// variant. `#[refusal(kind = "...")]` sets the kind of a variant; the default is its name in snake
/// case. `#[refusal(transparent)]` passes on class, kind and fields of the error that a variant
/// wraps, whose enum lists its kinds itself.
#[proc_macro_derive(Refusal, attributes(refusal))]
pub fn refusal(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    derived(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn derived(input: &DeriveInput) -> Result<proc_macro2::TokenStream> {
    let (name, Data::Enum(data)) = (&input.ident, &input.data) else {
        return Err(Error::new_spanned(input, "expected an enum"));
    };
    let Attributes { class, .. } = attributes(&input.attrs)?;
    let class = class.ok_or_else(|| Error::new_spanned(name, "expected a class"))?;
    let (mut kinds, mut of, mut fields) = (Vec::new(), Vec::new(), Vec::new());
    for variant in &data.variants {
        let Variant { ident, attrs, fields: declared, .. } = variant;
        let own = attributes(attrs)?;
        if own.transparent {
            let wrapped = wrapped(variant)?;
            of.push(quote!(#name::#wrapped => ::tutti_units::refusal::Refusal::kind(source)));
            fields.push(quote!(#name::#wrapped => ::tutti_units::refusal::Refusal::fields(source)));
            continue;
        }
        let class = own.class.unwrap_or_else(|| class.clone());
        let kind = own.kind.unwrap_or_else(|| snake(ident));
        let names: Vec<_> = declared.iter().filter_map(|field| field.ident.as_ref()).collect();
        kinds.push(quote!((#class, #kind)));
        of.push(quote!(#name::#ident { .. } => (#class, #kind)));
        fields.push(quote!(#name::#ident { #(#names),* } => {
            vec![#((stringify!(#names), ::tutti_units::refusal::Field::value(#names))),*]
        }));
    }
    Ok(quote! {
        impl ::tutti_units::refusal::Refusal for #name {
            const KINDS: &'static [(&'static str, &'static str)] = &[#(#kinds),*];

            fn kind(&self) -> (&'static str, &'static str) {
                match self { #(#of),* }
            }

            fn fields(&self) -> Vec<(&'static str, ::tutti_units::refusal::Value)> {
                match self { #(#fields),* }
            }
        }
    })
}

/// The pattern of a variant with one field, an error, which it binds to `source`.
fn wrapped(Variant { ident, fields, .. }: &Variant) -> Result<proc_macro2::TokenStream> {
    match fields {
        Fields::Unnamed(declared) if declared.unnamed.len() == 1 => Ok(quote!(#ident(source))),
        Fields::Named(declared) if declared.named.len() == 1 => {
            let field = &declared.named[0].ident;
            Ok(quote!(#ident { #field: source }))
        }
        _ => Err(Error::new_spanned(ident, "expected one field, an error")),
    }
}

/// What `#[refusal(...)]` declares.
#[derive(Default)]
struct Attributes {
    class: Option<String>,
    kind: Option<String>,
    transparent: bool,
}

/// Reads the attributes of an enum or a variant.
fn attributes(attrs: &[Attribute]) -> Result<Attributes> {
    let mut declared = Attributes::default();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("refusal")) {
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("transparent") {
                declared.transparent = true;
                return Ok(());
            }
            let text = Some(meta.value()?.parse::<LitStr>()?.value());
            if meta.path.is_ident("class") {
                declared.class = text;
            } else {
                declared.kind = text;
            }
            Ok(())
        })?;
    }
    Ok(declared)
}

/// Derives names for the variants of an enum: snake case, or the argument of `#[named("...")]`.
/// Adds the constants `ALL` and `NAMES`, `name`, `from_name`, and `Display` by name.
#[proc_macro_derive(Named, attributes(named))]
pub fn named(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    with_names(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn with_names(input: &DeriveInput) -> Result<proc_macro2::TokenStream> {
    let (name, vis, Data::Enum(data)) = (&input.ident, &input.vis, &input.data) else {
        return Err(Error::new_spanned(input, "expected an enum"));
    };
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let texts = data.variants.iter().map(text_of).collect::<Result<Vec<_>>>()?;
    let count = variants.len();
    Ok(quote! {
        #[allow(dead_code)]
        impl #name {
            /// Every variant, in order.
            #vis const ALL: [#name; #count] = [#(#name::#variants),*];

            /// The names in the same order.
            #vis const NAMES: [&'static str; #count] = [#(#texts),*];

            /// The name in files and results.
            #[must_use]
            #vis const fn name(self) -> &'static str {
                match self { #(#name::#variants => #texts),* }
            }

            /// The variant of a name.
            #[must_use]
            #vis fn from_name(name: &str) -> Option<#name> {
                #name::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl ::std::fmt::Display for #name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    })
}

/// The name of a variant in files and results.
fn text_of(Variant { ident, attrs, .. }: &Variant) -> Result<String> {
    let own = attrs.iter().find(|attr| attr.path().is_ident("named"));
    let own = own.map(|attr| attr.parse_args::<LitStr>()).transpose()?;
    Ok(own.map_or_else(|| snake(ident), |text| text.value()))
}

fn snake(ident: &syn::Ident) -> String {
    let mut name = String::new();
    for letter in ident.to_string().chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
