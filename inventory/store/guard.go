// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/bellwether-dev/bellwether/inventory"
)

// guard decides what a user's statement may do. SQLite asks it for each operation while it compiles the statement (see
// https://www.sqlite.org/c3ref/set_authorizer.html), so what is judged is what runs: no second parser has to agree with
// SQLite's. Everything that is not listed is refused.
type guard struct {
	// refusal is the first operation that was refused.
	refusal string
}

// permittedFunctions are the functions of SQLite that queries may use. They compute a value from their arguments alone,
// or the time of a query; the length of values is limited.
var permittedFunctions = strings.Fields(`
	abs avg ceil ceiling coalesce concat concat_ws count cume_dist date datetime dense_rank exp first_value floor
	format glob group_concat hex iif if ifnull json json_array json_array_length json_each json_extract
	json_group_array json_group_object json_object json_type json_valid julianday lag last_value lead length like
	likelihood likely ln log log10 log2 lower ltrim max min mod nth_value ntile nullif octet_length
	percent_rank pow power printf quote rank round row_number
	rtrim sign sqrt strftime string_agg substr substring sum time timediff total trim trunc typeof unicode
	unixepoch unlikely upper -> ->>`)

// views are the names of the views that queries may read.
var views = listViewNames()

func listViewNames() []string {
	var names []string
	for _, v := range inventory.Views() {
		names = append(names, v.Name)
	}
	return names
}

// authorize implements sqlite.AuthorizerFn. view is the innermost view or name of a WITH clause that reads. Users
// choose the names of WITH clauses, so that only names with innerPrefix are trusted: check refuses texts with it.
func (g *guard) authorize(action sqlite.AuthorizerActionCode, first, second, database, view string,
) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthFunction:
		if slices.Contains(permittedFunctions, strings.ToLower(second)) {
			return sqlite.AuthorizerOK
		}
		return g.refuse("the function " + second + " is not permitted; docs/guides/inventory.md lists those that are")
	case sqlite.AuthRead:
		isOfView := strings.HasPrefix(view, innerPrefix) || strings.HasPrefix(first, innerPrefix)
		isView := database != "main" && slices.Contains(views, first)
		// SQLite asks without a column for the names of WITH clauses, and for tables of which no column is used. No
		// user can name our own tables: see check.
		isCounted := second == "" && (database == "" || isInner(first)) && !strings.Contains(first, "sqlite_")
		if isOfView || isView || isCounted || first == "json_each" {
			return sqlite.AuthorizerOK
		}
		return g.refuse("there is no view " + first + ": the views are " + strings.Join(views, ", "))
	default:
		return g.refuse("only SELECT is permitted")
	}
}

// innerNames are the names of what the views read.
var innerNames = listInnerNames()

func listInnerNames() []string {
	names := []string{innerPrefix, "query_context", "visible_clusters", "visible_namespaces", "goose_db_version"}
	for _, t := range inventory.Tables() {
		names = append(names, keysOf(t), statesOf(t))
	}
	return names
}

func isInner(name string) bool {
	return slices.Contains(innerNames, name) || name == inventory.ObservationsView
}

// check refuses the text of a query that is too long, or that has a name of what only views may read. A name appears in
// the text as it is: SQLite has no escapes for names.
func check(text string) error {
	if len(text) > maxText {
		return fmt.Errorf("%w: it has more than %d bytes", inventory.ErrRefused, maxText)
	}
	lower := strings.ToLower(text)
	for _, name := range innerNames {
		if strings.Contains(lower, name) {
			return fmt.Errorf("%w: there is no view %s: the views are %s", inventory.ErrRefused, name,
				strings.Join(views, ", "))
		}
	}
	return nil
}

func (g *guard) refuse(reason string) sqlite.AuthorizerReturnCode {
	if g.refusal == "" {
		g.refusal = reason
	}
	return sqlite.AuthorizerDeny
}

// install lets the guard decide about a connection, and sets the limits of its statements.
func (g *guard) install(connection *sql.Conn) error {
	if err := setLimits(connection); err != nil {
		return err
	}
	return register(connection, g.authorize)
}

// remove lets everything pass again, for the next query on the connection.
func (g *guard) remove(connection *sql.Conn) {
	if err := register(connection, nil); err != nil { // the connection is unusable
		_ = connection.Raw(func(any) error { return driver.ErrBadConn })
	}
}

func register(connection *sql.Conn, authorize sqlite.AuthorizerFn) error {
	err := connection.Raw(func(connection any) error {
		return connection.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(authorize)
	})
	if err != nil {
		return fmt.Errorf("guard queries: %w", err)
	}
	return nil
}

// errTooLong ends queries that run for longer than MaxTime.
var errTooLong = fmt.Errorf(
	"%w: it took longer than %s; ask for less, such as one operator or one cluster, or a shorter "+
		"time in a history",
	inventory.ErrRefused,
	MaxTime,
)

// explain returns an error about a statement in words for its author.
func (g *guard) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if g.refusal != "" {
		return fmt.Errorf("%w: %s", inventory.ErrRefused, g.refusal)
	}
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return fmt.Errorf("%w: %w", inventory.ErrRefused, err)
	}
	switch failure.Code() & 0xff { // without the extension of the code
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_BUSY,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("read inventory: %w", err)
	}
	// The words of SQLite, without those of the driver around them.
	message := strings.TrimPrefix(strings.TrimSuffix(failure.Error(), fmt.Sprintf(" (%d)", failure.Code())),
		"SQL logic error: ")
	switch {
	case strings.Contains(message, "no such table"):
		message += ": the views are " + strings.Join(views, ", ")
	case failure.Code() == sqlite3.SQLITE_TOOBIG:
		message = fmt.Sprintf("a value has more than %d bytes: select fewer rows or columns", maxValue)
	}
	return fmt.Errorf("%w: %s", inventory.ErrRefused, message)
}
