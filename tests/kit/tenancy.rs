//! Whether a statement stays within an account.
//!
//! It does when every tenant table that it reads, updates or deletes from is confined to
//! the account: by `account_id = $1`, or by equality with the `account_id` of a confined table.
//! Inserted rows have the account's id, and updates keep it. A distributed PostgreSQL then finds
//! all rows of a statement on one node.

use std::{collections::BTreeSet, ops::ControlFlow};

use sqlparser::{
    ast::*,
    dialect::PostgreSqlDialect,
    parser::{Parser, ParserError},
};

/// The column with the account of a row.
const ACCOUNT: &str = "account_id";

/// The reasons why the statements do not stay within an account, one line each.
/// `tenants` are the tables whose rows belong to accounts.
pub fn faults(sql: &str, tenants: &BTreeSet<String>) -> Result<Vec<String>, ParserError> {
    let mut checker = Checker {
        tenants,
        scopes: Vec::new(),
        named: 0,
        checked: 0,
        faults: Vec::new(),
    };
    for statement in Parser::parse_sql(&PostgreSqlDialect {}, sql)? {
        let _: ControlFlow<()> = statement.visit(&mut checker);
    }
    if checker.named != checker.checked {
        let fault = "names a tenant table in an unchecked place";
        checker.faults.push(fault.to_owned());
    }
    Ok(checker.faults)
}

struct Checker<'a> {
    tenants: &'a BTreeSet<String>,
    /// The tables in scope, innermost last.
    scopes: Vec<Vec<Relation>>,
    /// How often tenant tables are named, and how often they were checked.
    named: usize,
    checked: usize,
    faults: Vec<String>,
}

/// A table in a statement.
#[derive(Clone, Debug)]
struct Relation {
    alias: String,
    is_tenant: bool,
    is_confined: bool,
}

/// A condition on every row, or on those of one outer-joined table.
enum JoinCondition<'a> {
    All(&'a Expr),
    OuterJoined(usize, &'a Expr),
}

/// One side of an equality: a parameter or literal, the account of a relation (how many scopes
/// outside, and its index there), or anything else.
enum Side {
    Value,
    Account(usize, usize),
    Other,
}

impl Visitor for Checker<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        for name in with.map(|cte| &cte.alias.name.value) {
            if self.tenants.contains(name) {
                self.faults.push(format!("hides the tenant table {name}"));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.named += usize::from(self.is_tenant(relation));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let scope = self.scope(&select.from, select.selection.as_ref());
        self.enter(scope);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        match statement {
            Statement::Query(_) => {}
            Statement::Insert(insert) => self.check_insert(insert),
            Statement::Update(update) => {
                let mut tables = vec![update.table.clone()];
                match &update.from {
                    Some(
                        UpdateTableFromKind::AfterSet(from) | UpdateTableFromKind::BeforeSet(from),
                    ) => tables.extend(from.iter().cloned()),
                    None => {}
                }
                let scope = self.scope(&tables, update.selection.as_ref());
                self.enter(scope);
                self.check_assignments(&update.assignments, update.selection.as_ref());
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                let using = delete.using.iter().flatten();
                let tables: Vec<_> = from.iter().chain(using).cloned().collect();
                let scope = self.scope(&tables, delete.selection.as_ref());
                self.enter(scope);
            }
            Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. }
            | Statement::Set(_)
            | Statement::Deallocate { .. } => {}
            _ => self.faults.push("is of an unknown kind".to_owned()),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        if matches!(statement, Statement::Update(_) | Statement::Delete(_)) {
            self.scopes.pop();
        }
        ControlFlow::Continue(())
    }
}

impl Checker<'_> {
    fn is_tenant(&self, name: &ObjectName) -> bool {
        self.tenants.contains(&last(name))
    }

    /// Enters a scope and reports its tables that are not confined.
    fn enter(&mut self, scope: Vec<Relation>) {
        for relation in scope.iter().filter(|relation| relation.is_tenant) {
            self.checked += 1;
            if !relation.is_confined {
                let fault = format!("{} is not confined to an account", relation.alias);
                self.faults.push(fault);
            }
        }
        self.scopes.push(scope);
    }

    /// The tables of a FROM, and which of them its conditions confine to an account.
    fn scope(&self, from: &[TableWithJoins], selection: Option<&Expr>) -> Vec<Relation> {
        let mut scope = Vec::new();
        let mut conditions = Vec::new();
        for tables in from {
            self.add_relation(&tables.relation, &mut scope);
            for join in &tables.joins {
                let joined = scope.len();
                self.add_relation(&join.relation, &mut scope);
                match &join.join_operator {
                    JoinOperator::Join(JoinConstraint::On(on))
                    | JoinOperator::Inner(JoinConstraint::On(on)) => {
                        conditions.push(JoinCondition::All(on));
                    }
                    JoinOperator::Left(JoinConstraint::On(on))
                    | JoinOperator::LeftOuter(JoinConstraint::On(on)) => {
                        conditions.push(JoinCondition::OuterJoined(joined, on));
                    }
                    // Other joins confine nothing.
                    _ => {}
                }
            }
        }
        conditions.extend(selection.map(JoinCondition::All));
        while self.confine_tables(&mut scope, &conditions) {}
        scope
    }

    fn add_relation(&self, factor: &TableFactor, scope: &mut Vec<Relation>) {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let alias = alias.as_ref().map(|alias| alias.name.value.clone());
                scope.push(Relation {
                    alias: alias.unwrap_or_else(|| last(name)),
                    is_tenant: self.is_tenant(name),
                    is_confined: false,
                });
            }
            // A subquery is a scope of its own.
            TableFactor::Derived {
                alias: Some(alias), ..
            } => scope.push(Relation {
                alias: alias.name.value.clone(),
                is_tenant: false,
                is_confined: false,
            }),
            // If it names a tenant table, `named` exceeds `checked`, which is a fault.
            _ => {}
        }
    }

    /// Confines tables by the conditions. Returns whether one was not confined before.
    fn confine_tables(&self, scope: &mut [Relation], conditions: &[JoinCondition<'_>]) -> bool {
        let mut confined = BTreeSet::new();
        for condition in conditions {
            let (only, expression) = match condition {
                JoinCondition::All(expression) => (None, *expression),
                JoinCondition::OuterJoined(relation, expression) => (Some(*relation), *expression),
            };
            for (left, right) in equalities(expression) {
                let sides = [self.side(scope, left), self.side(scope, right)];
                for (one, other) in [(&sides[0], &sides[1]), (&sides[1], &sides[0])] {
                    if let Side::Account(0, relation) = *one
                        && only.is_none_or(|only| only == relation)
                        && self.is_confined(scope, other)
                        && !scope[relation].is_confined
                    {
                        confined.insert(relation);
                    }
                }
            }
        }
        for relation in &confined {
            scope[*relation].is_confined = true;
        }
        !confined.is_empty()
    }

    fn is_confined(&self, scope: &[Relation], side: &Side) -> bool {
        match side {
            Side::Value => true,
            Side::Account(0, relation) => scope[*relation].is_confined,
            Side::Account(out, relation) => {
                self.scopes[self.scopes.len() - out][*relation].is_confined
            }
            Side::Other => false,
        }
    }

    fn side(&self, scope: &[Relation], expression: &Expr) -> Side {
        let (table, column) = match expression {
            Expr::Nested(inner) => return self.side(scope, inner),
            Expr::Cast { expr, .. } => return self.side(scope, expr),
            Expr::Value(value) => return side_of_value(value),
            Expr::Identifier(column) => (None, column),
            Expr::CompoundIdentifier(path) => match path.as_slice() {
                [table, column] => (Some(&table.value), column),
                _ => return Side::Other,
            },
            _ => return Side::Other,
        };
        if column.value != ACCOUNT {
            return Side::Other;
        }
        let outer = self.scopes.iter().rev().map(Vec::as_slice);
        for (out, scope) in std::iter::once(scope).chain(outer).enumerate() {
            let found = scope.iter().position(|relation| match table {
                Some(table) => relation.alias == *table,
                // PostgreSQL has checked that it is unique.
                None => relation.is_tenant,
            });
            if let Some(relation) = found {
                return Side::Account(out, relation);
            }
        }
        Side::Other
    }

    /// Reports assignments that change the account of a row.
    fn check_assignments(&mut self, assignments: &[Assignment], selection: Option<&Expr>) {
        let condition = selection.map(equalities).unwrap_or_default();
        for assignment in assignments {
            let columns = match &assignment.target {
                AssignmentTarget::ColumnName(column) => std::slice::from_ref(column),
                AssignmentTarget::Tuple(columns) => columns.as_slice(),
            };
            if !columns.iter().any(|column| last(column) == ACCOUNT) {
                continue;
            }
            // Only the account that the condition requires may be assigned.
            let same = condition.iter().any(|(left, right)| {
                is_account_column(left) && **right == assignment.value
                    || is_account_column(right) && **left == assignment.value
            });
            if !same {
                self.faults.push("changes the account of a row".to_owned());
            }
        }
    }

    fn check_insert(&mut self, insert: &Insert) {
        let TableObject::TableName(table) = &insert.table else {
            return;
        };
        if !self.is_tenant(table) {
            return;
        }
        self.checked += 1;
        let table = last(table);
        let place = insert.columns.iter().position(|name| last(name) == ACCOUNT);
        let source = insert.source.as_ref().map(|source| &*source.body);
        let names_account = match (place, source) {
            (Some(place), Some(source)) => self.names_account(source, place),
            _ => false,
        };
        if !names_account {
            let fault = format!("what is inserted into {table} does not name its account");
            self.faults.push(fault);
        }
        let Some(OnInsert::OnConflict(conflict)) = &insert.on else {
            return;
        };
        if let Some(ConflictTarget::Columns(columns)) = &conflict.conflict_target
            && !columns.iter().any(|column| column.value == ACCOUNT)
        {
            let fault = format!("a conflict in {table} is looked for in all accounts");
            self.faults.push(fault);
        }
        if let OnConflictAction::DoUpdate(update) = &conflict.action {
            self.check_assignments(&update.assignments, None);
        }
    }

    /// Whether this column of each row is an account in scope.
    fn names_account(&self, source: &SetExpr, place: usize) -> bool {
        match source {
            SetExpr::Values(values) => values.rows.iter().all(|row| {
                let value = row.content.get(place);
                value.is_some_and(|value| matches!(self.side(&[], value), Side::Value))
            }),
            SetExpr::Select(select) => {
                let scope = self.scope(&select.from, select.selection.as_ref());
                let value = match select.projection.get(place) {
                    Some(
                        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. },
                    ) => expr,
                    _ => return false,
                };
                self.is_confined(&scope, &self.side(&scope, value))
            }
            SetExpr::Query(query) => self.names_account(&query.body, place),
            _ => false,
        }
    }
}

/// A parameter or a text is a value; NULL is not.
fn side_of_value(value: &ValueWithSpan) -> Side {
    match value.value {
        Value::Placeholder(_) | Value::SingleQuotedString(_) => Side::Value,
        _ => Side::Other,
    }
}

/// The equalities that a condition implies.
fn equalities(condition: &Expr) -> Vec<(&Expr, &Expr)> {
    match condition {
        Expr::Nested(inner) => equalities(inner),
        Expr::BinaryOp { left, op, right } => match (op, &**left, &**right) {
            (BinaryOperator::And, left, right) => {
                let mut both = equalities(left);
                both.extend(equalities(right));
                both
            }
            (BinaryOperator::Eq, Expr::Tuple(left), Expr::Tuple(right)) => {
                left.iter().zip(right).collect()
            }
            (BinaryOperator::Eq, left, right) => vec![(left, right)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn is_account_column(expression: &Expr) -> bool {
    match expression {
        Expr::Identifier(column) => column.value == ACCOUNT,
        Expr::CompoundIdentifier(path) => path.last().is_some_and(|column| column.value == ACCOUNT),
        _ => false,
    }
}

/// The last part of a name.
fn last(name: &ObjectName) -> String {
    let part = name.0.last().and_then(ObjectNamePart::as_ident);
    part.map_or_else(String::new, |ident| ident.value.clone())
}
