//! Java signatures: `public static java.util.List a.b.C.find(int, java.lang.String) throws X` → class `a.b.C`, method `find(int,String)`.

/// A signature taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature<'t> {
    /// The class, with its package; empty where the signature has none.
    pub(super) class: &'t str,
    /// The method with the types of its parameters, these without packages; without parentheses if the signature has none.
    pub(super) method: String,
}

impl<'t> Signature<'t> {
    /// Takes `text` apart; whatever it is, something comes out.
    pub(super) fn of(text: &'t str) -> Self {
        let (before, parameters) = match text.split_once('(') {
            Some((before, rest)) => (before, Some(rest.rsplit_once(')').map_or(rest, |(parameters, _)| parameters))),
            None => (text, None),
        };
        // What stands before the last blank is modifiers and the type of the result.
        let full = before.trim_end().rsplit(char::is_whitespace).next().unwrap_or(before);
        let (class, name) = full.rsplit_once('.').unwrap_or(("", full));
        let method = match parameters {
            None => name.to_owned(),
            Some(parameters) => {
                let simple: Vec<String> = parameters.split(',').map(|parameter| simple_type(parameter.trim())).collect();
                format!("{name}({})", simple.join(","))
            }
        };
        Self { class, method }
    }

    /// Whether there is a name before the parameters.
    pub(super) fn names_operation(&self) -> bool {
        !self.method.is_empty() && !self.method.starts_with('(')
    }

    /// Whether objects of `class` may have the operation: not if that ends with its package, or within the package of the class
    /// that declares the operation, as no class is in itself.
    pub(super) fn may_be_of(&self, class: &str) -> bool {
        let declared_in = self.class.strip_prefix(class).is_some_and(|rest| !class.is_empty() && rest.contains('.'));
        !class.ends_with('.') && !declared_in
    }
}

/// A type without its packages: `java.util.Map<a.K, b.V>[]` → `Map<K, V>[]`, `java.lang.String...` → `String...`.
fn simple_type(text: &str) -> String {
    // The last parameter may be any number of its type.
    if let Some(one) = text.strip_suffix("...") {
        return simple_type(one) + "...";
    }
    let mut simple = String::new();
    let mut word_start = 0;
    for c in text.chars() {
        match c {
            '.' => simple.truncate(word_start),
            _ => {
                simple.push(c);
                if !(c.is_alphanumeric() || c == '_' || c == '$') {
                    word_start = simple.len();
                }
            }
        }
    }
    simple
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, class: &str, method: &str) {
        assert_eq!(Signature::of(text), Signature { class, method: method.to_owned() }, "{text}");
    }

    #[test]
    fn any_number_of_a_type_is_a_type_of_its_own() {
        check("void p.C.log(java.lang.String...)", "p.C", "log(String...)");
        check("void p.C.log(java.util.Map<a.K>, int...)", "p.C", "log(Map<K>,int...)");
    }

    #[test]
    fn modifiers_result_and_packages_of_parameters_go() {
        check("bookstoreTracing.Catalog.getBook(boolean)", "bookstoreTracing.Catalog", "getBook(boolean)");
        check("public static void a.Main.main(java.lang.String[])", "a.Main", "main(String[])");
        check("public java.util.List a.b.C.f(int, java.util.Map<a.K,b.V>) throws a.X", "a.b.C", "f(int,Map<K,V>)");
        check("a.Starter$1.<init>(a.Bookstore, java.util.concurrent.CountDownLatch)", "a.Starter$1", "<init>(Bookstore,CountDownLatch)");
        check("public void a.C.run()", "a.C", "run()");
    }

    #[test]
    fn what_is_left_of_a_class_is_no_class() {
        let find = Signature::of("void a.b.C.find()");
        assert!(["a.b.C", "a.b.C$1", "a.b.Cat", "a.x.D", "D", ""].iter().all(|class| find.may_be_of(class)));
        assert!(["a.b.", "a.b", "a", "x."].iter().all(|class| !find.may_be_of(class)));
        assert!(Signature::of("a.b.C.find").names_operation() && Signature::of("main").names_operation());
        assert!(["", "void a.C.", "void a.C.(int)", "("].iter().all(|text| !Signature::of(text).names_operation()), "a name is missing");
    }

    #[test]
    fn old_and_odd_forms_give_something() {
        check("a.b.C.find", "a.b.C", "find");
        check("main", "", "main");
        check("", "", "");
        check("f(", "", "f()");
        check(") (", "", ")()");
    }
}
