//! The SeaORM entities of the tables.

use sea_orm::{Iterable, entity::prelude::*};

use crate::domain::ids::AccountId;

/// The relations of every entity: none, as each query writes its own joins.
#[derive(Copy, Clone, Debug, EnumIter)]
pub enum Relation {}

impl RelationTrait for Relation {
    fn def(&self) -> RelationDef {
        match *self {}
    }
}

/// A table whose rows belong to accounts.
pub trait OfAccount: EntityTrait {
    const ACCOUNT: Self::Column;

    /// The account's rows of the table. Every query of plain rows begins with it, so that none
    /// can forget the account.
    fn select(account: &AccountId) -> Select<Self> {
        Self::find().filter(Self::ACCOUNT.eq(account.as_str()))
    }
}

/// A table as statements need it that are made for any table.
pub struct TableColumns {
    pub name: &'static str,
    /// Whether its rows belong to accounts.
    pub is_of_accounts: bool,
    pub columns: Vec<(&'static str, ColumnType)>,
    /// The columns of its primary key.
    pub keys: Vec<&'static str>,
}

impl TableColumns {
    fn of<E: EntityTrait>() -> Self {
        let columns = E::Column::iter();
        let columns =
            columns.map(|column| (column.as_str(), column.def().get_column_type().clone()));
        let columns: Vec<_> = columns.collect();
        let keys = E::PrimaryKey::iter().map(|key| key.into_column().as_str());
        Self {
            name: E::default().table_name(),
            is_of_accounts: columns.iter().any(|(name, _)| *name == "account_id"),
            columns,
            keys: keys.collect(),
        }
    }
}

/// Tables whose rows belong to accounts: the module of the entity and the name of the table, then the
/// columns of its primary key behind `account_id`, and its other columns.
macro_rules! of_account {
    ($($(#[$doc:meta])* $table:ident $name:tt {
        $($(#[$key_doc:meta])* $key:ident: $key_type:ty,)*
    } {
        $($(#[$column_doc:meta])* $column:ident: $column_type:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            pub mod $table {
                use sea_orm::entity::prelude::*;

                use super::Relation;

                #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
                #[sea_orm(table_name = $name)]
                pub struct Model {
                    #[sea_orm(primary_key, auto_increment = false)]
                    pub account_id: String,
                    $(
                        $(#[$key_doc])*
                        #[sea_orm(primary_key, auto_increment = false)]
                        pub $key: $key_type,
                    )*
                    $(
                        $(#[$column_doc])*
                        pub $column: $column_type,
                    )*
                }

                impl ActiveModelBehavior for ActiveModel {}
            }

            impl OfAccount for $table::Entity {
                const ACCOUNT: $table::Column = $table::Column::AccountId;
            }
        )*

        /// The columns of all tables, in no order.
        pub fn all_columns() -> Vec<TableColumns> {
            vec![
                $(TableColumns::of::<$table::Entity>(),)*
                TableColumns::of::<server_key::Entity>(),
            ]
        }
    };
}

of_account! {
    /// Accounts, as far as something is kept of each.
    account "accounts" {} {
        /// The last id that was given to a role.
        last_role_id: i64,
    }

    /// The entries of the change feed.
    change "changes" {
        /// Drawn while the write holds its locks; the database sets it.
        seq: i64,
    } {
        /// Its place in the feed of the account, from 1; `None` until it is sequenced.
        position: Option<i64>,
        transaction_id: Uuid,
        /// How many entries the transaction has.
        transaction_size: i32,
        /// [`ChangeKind`](crate::domain::change_feed::ChangeKind).
        kind: i16,
        task: Uuid,
        step: Option<Uuid>,
        /// The version after the change; `None` if it was deleted.
        version: Option<i64>,
        /// When the write was made. It is the `modified_ts` of that version.
        changed_ts: i64,
        step_count: i32,
        /// The names of the fields that differ, with commas between them.
        fields: String,
        /// [`WriteRpc`](crate::domain::change_feed::WriteRpc).
        rpc: i16,
        subject: String,
    }

    /// How far the change feed of an account is sequenced and pruned.
    change_feed "change_feeds" {} {
        /// The highest position that was given.
        head: i64,
        /// The highest position that was deleted; 0 if none was.
        pruned: i64,
        /// The transaction of the entry there.
        pruned_transaction: Uuid,
    }

    /// Deleted tasks and steps that an external index holds.
    index_deletion "index_deletions" {
        guid: Uuid,
    } {
        /// [`IndexKind`](crate::domain::index_work::IndexKind).
        kind: i32,
        /// The task, or the task of the step.
        task: Uuid,
        /// Names the deletion.
        mark: Uuid,
    }

    /// What tasks and steps do with the names of variables.
    name_use "name_uses" {
        /// [`NameDigest`](crate::domain::analysis::NameDigest): of a name and of what is done with it.
        name_digest: Uuid,
        /// 1 of a step and 0 of a task, so that the tasks among many steps are found.
        in_step: i16,
        /// The task or step.
        guid: Uuid,
    } {
    }

    /// The answers of creates by request id, for retries.
    request_outcome "request_outcomes" {
        request_id: Uuid,
    } {
        digest: Vec<u8>,
        outcome: Vec<u8>,
        created_ts: i64,
    }

    /// Aliases of revisions.
    revision_alias "revision_aliases" {
        task: Uuid,
        alias: String,
    } {
        /// The number of the revision.
        number: i64,
    }

    /// Roles of an account.
    role "roles" {
        id: i64,
    } {
        name: String,
    }

    /// Steps, without their translations.
    step "steps" {
        guid: Uuid,
    } {
        task: Uuid,
        position: i64,
        fraction: Vec<u8>,
        /// The type's number in the contract.
        kind: i32,
        product_id: i64,
        title: String,
        external_id: Option<String>,
        cost: i32,
        published: i32,
        dependencies: Option<String>,
        feedback_config: Option<String>,
        instructions: Option<String>,
        looping: Option<String>,
        parts: Option<String>,
        skills: Option<String>,
        tags: Option<String>,
        subtask_id: Option<Uuid>,
        subtask_pid: Option<i64>,
        /// Whether the subtask is the step's link.
        is_link: bool,
        r_data: Option<String>,
        /// [`StepSize::listed`](crate::domain::size::StepSize::listed).
        size: i64,
        /// [`StepSize::bodies`](crate::domain::size::StepSize::bodies).
        body_size: i64,
        /// [`SourceDigest::of_content`](crate::domain::translation_work::SourceDigest::of_content).
        rest_digest: Vec<u8>,
        /// How many translations it has. Reads skip the translations when there are none.
        language_count: i64,
        version: i64,
        dirty_record: bool,
        /// Whether the external index holds it. Only its acknowledgements set it.
        indexed: bool,
        created_ts: i64,
        modified_ts: i64,
        body: Option<String>,
    }

    /// A step's texts in one language.
    step_translation "step_translations" {
        step: Uuid,
        language: String,
    } {
        locked: bool,
        title: Option<String>,
        instructions: Option<String>,
        feedback_config: Option<String>,
        /// The step's title when this was written.
        translated_from_title: String,
        /// The step's `rest_digest` when this was written.
        translated_from_rest: Vec<u8>,
        body: Option<String>,
    }

    /// Tasks, without their translations.
    task "tasks" {
        guid: Uuid,
    } {
        name: String,
        product_id: i64,
        /// The type's number in the contract.
        kind: i32,
        published: i32,
        /// The numbers of the access levels as a JSON list, in the caller's order.
        roles: String,
        /// The access levels as a set of bits, for filters.
        role_bits: i32,
        /// [`Group`](crate::domain::dependency::Group) as JSON.
        dependencies: Option<String>,
        external_id: Option<String>,
        parent_guid: Option<Uuid>,
        idx: i32,
        step_count: i64,
        /// [`Numbering::last_position`](crate::domain::order::Numbering::last_position).
        last_position: i64,
        /// [`Numbering::epoch`](crate::domain::order::Numbering::epoch).
        order_epoch: i64,
        /// [`task_size`](crate::domain::size::task_size).
        size: i64,
        /// How many translations it has. Reads skip the translations when there are none.
        language_count: i64,
        version: i64,
        dirty_record: bool,
        mvn_indexed: bool,
        mvn_version: i64,
        mvn_info: String,
        mvn_ts: Option<i64>,
        created_ts: i64,
        modified_ts: i64,
    }

    /// The histories of tasks: their last number, and whether the task is deleted.
    task_history "task_histories" {
        task: Uuid,
    } {
        /// The number of the newest revision that was ever made.
        last_number: i64,
        /// When the task was deleted; `None` while it exists.
        deleted_ts: Option<i64>,
        deleted_by: String,
    }

    /// Revisions: guides as they were.
    task_revision "task_revisions" {
        task: Uuid,
        number: i64,
    } {
        cause: i32,
        note: String,
        subject: String,
        created_ts: i64,
        task_name: String,
        product_id: i64,
        step_count: i64,
        guide_etag: String,
        /// The bytes of `content`.
        size: i64,
        /// The bytes of the document before it was compressed.
        document_size: i64,
        content: Vec<u8>,
    }

    /// A task's texts in one language.
    task_translation "task_translations" {
        task: Uuid,
        language: String,
    } {
        name: Option<String>,
        locked: bool,
        /// The task's name when this was written.
        translated_from_name: String,
    }
}

/// Secrets of all servers of a database.
pub mod server_key {
    use sea_orm::entity::prelude::*;

    use super::Relation;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "server_keys")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub name: String,
        pub value: Vec<u8>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}
