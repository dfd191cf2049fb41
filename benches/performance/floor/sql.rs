//! The statements. 1048576 in them is [`super::schema::GAP`].

/// The columns that a response needs, in the order of [`super::row::StepRow`].
macro_rules! step {
    () => {
        "guid, task, kind, product_id, title, cost, published, etag, dirty_record, created_ts, \
         modified_ts, dependencies, feedback_config, instructions, looping, parts, skills, tags, \
         subtask_id, subtask_pid, link, r_data, translations"
    };
}

/// In the order of [`super::row::TaskRow`].
macro_rules! task {
    () => {
        "t.guid, t.name, t.product_id, t.kind, t.published, t.roles, t.etag, t.dirty_record, \
         t.created_ts, t.modified_ts, t.dependencies, t.parent_guid, t.idx, t.mvn_indexed, \
         t.mvn_version, t.mvn_info, t.mvn_ts"
    };
}

/// Parameters: account, step.
pub const GET_STEP: &str = concat!(
    "SELECT ",
    step!(),
    ", body FROM steps WHERE account_id = $1 AND guid = $2"
);

/// Parameters: account, task, the number of steps of a page plus one.
pub const LIST_STEPS: &str = concat!(
    "SELECT ",
    step!(),
    " FROM steps WHERE account_id = $1 AND task = $2 ORDER BY position LIMIT $3"
);

/// The same with the bodies.
pub const LIST_STEPS_WITH_BODIES: &str = concat!(
    "SELECT ",
    step!(),
    ", body FROM steps WHERE account_id = $1 AND task = $2 ORDER BY position LIMIT $3"
);

/// Parameters: account, task.
pub const READ_STEPS: &str = concat!(
    "SELECT ",
    step!(),
    ", body FROM steps WHERE account_id = $1 AND task = $2 ORDER BY position"
);

/// Notes a change in the feed: before the values of account, transaction, time, task and step.
macro_rules! note_change {
    () => {
        "INSERT INTO changes (kind, rpc, transaction_size, step_count, version, fields, subject, \
         account_id, transaction_id, changed_ts, task, step) \
         SELECT 5, 4, 1, 0, 1, 'title', '', "
    };
}

macro_rules! update_step {
    () => {
        "UPDATE steps SET title = $3, etag = $4, dirty_record = true, modified_ts = $5 \
         WHERE account_id = $1 AND guid = $2 AND etag = $6"
    };
}

/// Parameters: account, step, title, etag, now, the etag that was read, transaction.
pub const UPDATE_STEP_POSTGRES: &str = concat!(
    "WITH s AS (",
    update_step!(),
    " RETURNING task) ",
    note_change!(),
    "$1, $7, $5, task, $2 FROM s"
);

/// The same for SQLite, written as several statements in one string.
pub const UPDATE_STEP_SQLITE: &str = concat!(
    "BEGIN IMMEDIATE; ",
    update_step!(),
    "; ",
    note_change!(),
    "$1, $7, $5, task, $2 FROM steps WHERE account_id = $1 AND guid = $2 AND etag = $4; COMMIT"
);

macro_rules! delete_step {
    () => {
        "DELETE FROM steps WHERE account_id = $1 AND guid = $2 AND etag = $6"
    };
}

macro_rules! shorten_task {
    () => {
        "UPDATE tasks SET step_count = step_count - 1, etag = $4, dirty_record = true, \
         modified_ts = $5 WHERE account_id = $1 AND guid = $3 AND "
    };
}

/// Parameters: account, step, task, etag, now, the etag that was read, transaction.
pub const DELETE_STEP_POSTGRES: &str = concat!(
    "WITH s AS (",
    delete_step!(),
    " RETURNING task), t AS (",
    shorten_task!(),
    "EXISTS (SELECT 1 FROM s) RETURNING guid) ",
    note_change!(),
    "$1, $7, $5, guid, $2 FROM t"
);

/// The same for SQLite, written as several statements in one string.
pub const DELETE_STEP_SQLITE: &str = concat!(
    "BEGIN IMMEDIATE; ",
    delete_step!(),
    "; ",
    shorten_task!(),
    "changes() > 0; ",
    note_change!(),
    "$1, $7, $5, $3, $2 WHERE changes() > 0; COMMIT"
);

macro_rules! insert_translation {
    () => {
        "INSERT INTO step_translations (account_id, step, language, locked, title, body, \
         source_digest) "
    };
}

macro_rules! unless_locked {
    () => {
        " ON CONFLICT (account_id, step, language) DO UPDATE SET title = excluded.title, \
         body = excluded.body, source_digest = excluded.source_digest \
         WHERE NOT step_translations.locked"
    };
}

/// Parameters: account, etag, now; of the translations: steps, languages, titles, bodies,
/// digests; transaction.
pub const WRITE_TRANSLATIONS_POSTGRES: &str = concat!(
    "WITH written AS (",
    insert_translation!(),
    "SELECT $1, s.guid, g.language, false, g.title, g.body, g.digest \
     FROM unnest($4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[]) \
          AS g(step, language, title, body, digest) \
     JOIN steps s ON s.account_id = $1 AND s.guid = g.step",
    unless_locked!(),
    " RETURNING step), changed AS (\
     UPDATE steps SET etag = $2, dirty_record = true, modified_ts = $3 FROM written \
     WHERE steps.account_id = $1 AND steps.guid = written.step RETURNING task, guid) ",
    note_change!(),
    "$1, $9, $3, task, guid FROM changed"
);

/// The same for SQLite: account and values of each translation; etag, now, account and the
/// steps; transaction, account and the steps again. Unlike there, steps with a locked translation are
/// changed, too.
pub fn write_translations_sqlite(count: usize) -> String {
    let row = vec!["(?, ?, ?, ?, ?, ?)"; count].join(", ");
    let steps = vec!["?"; count].join(", ");
    format!(
        "BEGIN IMMEDIATE; {}SELECT column1, s.guid, column3, false, column4, column5, column6 \
         FROM (VALUES {row}) JOIN steps s ON s.account_id = column1 AND s.guid = column2 \
         WHERE true{}; UPDATE steps SET etag = ?, dirty_record = true, modified_ts = ? \
         WHERE account_id = ? AND guid IN ({steps}); \
         {}account_id, ?, modified_ts, task, guid FROM steps \
         WHERE account_id = ? AND guid IN ({steps}); COMMIT",
        insert_translation!(),
        unless_locked!(),
        note_change!(),
    )
}

/// Parameters: account, task.
pub const GET_TASK_POSTGRES: &str = concat!(
    "SELECT ",
    task!(),
    ", (SELECT string_agg(s.guid::text, ',' ORDER BY s.position) FROM steps s \
        WHERE s.account_id = t.account_id AND s.task = t.guid) \
     FROM tasks t WHERE t.account_id = $1 AND t.guid = $2"
);

/// Parameters: account, task.
pub const GET_TASK_SQLITE: &str = concat!(
    "SELECT ",
    task!(),
    ", (SELECT string_agg(hex(s.guid), ',' ORDER BY s.position) FROM steps s \
        WHERE s.account_id = t.account_id AND s.task = t.guid) \
     FROM tasks t WHERE t.account_id = $1 AND t.guid = $2"
);

macro_rules! insert_step {
    () => {
        "INSERT INTO steps (account_id, guid, task, title, body, kind, product_id, cost, \
         published, etag, dirty_record, created_ts, modified_ts, position) "
    };
}

macro_rules! update_task {
    () => {
        "UPDATE tasks SET last_position = last_position + 1048576, step_count = step_count + 1, \
         etag = $10, dirty_record = true, modified_ts = $11 WHERE account_id = $1 AND guid = $2"
    };
}

/// Parameters: account, task, step, title, body, type, product, cost, published, etag, now,
/// transaction.
pub const CREATE_STEP_POSTGRES: &str = concat!(
    "WITH t AS (",
    update_task!(),
    " RETURNING last_position), s AS (",
    insert_step!(),
    "SELECT $1, $3, $2, $4, $5, $6, $7, $8, $9, $10, true, $11, $11, last_position FROM t \
     RETURNING task, guid) ",
    note_change!(),
    "$1, $12, $11, task, guid FROM s"
);

/// The same for SQLite, written as several statements in one string.
pub const CREATE_STEP_SQLITE: &str = concat!(
    "BEGIN IMMEDIATE; ",
    update_task!(),
    "; ",
    insert_step!(),
    "VALUES ($1, $3, $2, $4, $5, $6, $7, $8, $9, $10, true, $11, $11, \
     (SELECT last_position FROM tasks WHERE account_id = $1 AND guid = $2)); ",
    note_change!(),
    "$1, $12, $11, $2, $3; COMMIT"
);

macro_rules! imported_task {
    () => {
        "INSERT INTO tasks (account_id, guid, name, product_id, roles, step_count, last_position, \
         etag, created_ts, modified_ts, kind, published, idx, dirty_record, mvn_indexed, \
         mvn_version, mvn_info) "
    };
}

/// Parameters: account, task, name, product, roles, number of steps, last position, etag, now;
/// of the steps: ids, types, titles, bodies, costs; transaction.
pub const IMPORT_POSTGRES: &str = concat!(
    "WITH t AS (",
    imported_task!(),
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, 0, 1, 0, true, false, 0, '')), c AS (",
    note_change!(),
    "$1, $15, $9, $2, NULL) ",
    insert_step!(),
    "SELECT $1, s.guid, $2, s.title, s.body, s.kind, $4, s.cost, 1, $8, true, $9, $9, s.n * 1048576 \
     FROM unnest($10::uuid[], $11::integer[], $12::text[], $13::text[], $14::integer[]) \
          WITH ORDINALITY AS s(guid, kind, title, body, cost, n)"
);

/// The same for SQLite, which has no arrays: the values of each step after those of the
/// task, then account and task again; account, transaction, time and task of the change. Parameters have no names, as SQLite searches
/// names linearly.
pub fn import_sqlite(steps: usize) -> String {
    let mut sql = concat!(
        "BEGIN IMMEDIATE; ",
        imported_task!(),
        "SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, \
         column9, 0, 1, 0, true, false, 0, '' FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)); "
    )
    .to_owned();
    if steps > 0 {
        let rows: Vec<String> = (1..=steps)
            .map(|n| format!("(?, ?, ?, ?, ?, {n} * 1048576)"))
            .collect();
        sql.push_str(insert_step!());
        sql.push_str(
            "SELECT t.account_id, column1, t.guid, column3, column4, column2, t.product_id, \
             column5, 1, t.etag, true, t.created_ts, t.created_ts, column6 FROM (VALUES ",
        );
        sql.push_str(&rows.join(", "));
        sql.push_str(") CROSS JOIN tasks t WHERE t.account_id = ? AND t.guid = ?; ");
    }
    sql.push_str(note_change!());
    sql.push_str("?, ?, ?, ?, NULL; COMMIT");
    sql
}
