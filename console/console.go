// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console serves pages about the fleet, rendered on the server. They need no script. Each page is what the
// inventory answers about one time, as far as the user sees it: the console decides nothing, and keeps nothing but who
// is logged in.
package console

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"time"

	"github.com/bellwether-dev/bellwether/inventory"
)

//go:embed templates/*.html static
var files embed.FS

// Inventory answers the queries of one user.
type Inventory interface {
	// Query answers a request, as far as the user sees it. Errors wrap inventory.ErrRefused if the request is at fault.
	Query(ctx context.Context, request inventory.Request) (*inventory.Answer, error)
}

// Login returns the inventory for the user with a bearer token of the hub's API server. The error wraps ErrLogin if the
// token is not valid.
type Login func(ctx context.Context, token string) (Inventory, error)

// ErrLogin is wrapped by errors about a token that is not valid, or no longer.
var ErrLogin = errors.New("the hub does not accept the token")

// Options configure the console.
type Options struct {
	Login Login
	Now   func() time.Time
	// IsInsecure permits cookies over HTTP, for a console on loopback.
	IsInsecure bool
}

// Handler serves the pages.
type Handler struct {
	options   Options
	mux       *http.ServeMux
	templates map[string]*template.Template
	sessions  sessions
}

// New returns the console.
func New(o Options) (*Handler, error) {
	h := &Handler{options: o, mux: http.NewServeMux(), templates: map[string]*template.Template{},
		sessions: sessions{now: o.Now}}
	for _, p := range pages {
		h.mux.HandleFunc("GET "+p.pattern, h.newPageHandler(p))
	}
	for _, name := range append(listTemplates(), "login.html", "failure.html") {
		parsed, err := template.New("layout.html").Funcs(functions).Option("missingkey=error").
			ParseFS(files, "templates/layout.html", "templates/tables.html", "templates/"+name)
		if err != nil {
			return nil, fmt.Errorf("parse page %s: %w", name, err)
		}
		h.templates[name] = parsed
	}
	static, err := fs.Sub(files, "static")
	if err != nil {
		return nil, fmt.Errorf("read files: %w", err)
	}
	h.mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(static)))
	h.mux.HandleFunc("GET /login", h.showLogin)
	h.mux.HandleFunc("POST /login", h.login)
	h.mux.HandleFunc("POST /logout", h.logout)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, http.StatusNotFound, "There is no such page.")
	})
	return h, nil
}

// headers protect every page. Nothing is loaded but the console's own style, and no page can be framed.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; " +
		"base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	http.NewCrossOriginProtection().Handler(h.mux).ServeHTTP(w, r)
}

// frame is what all pages have in common.
type frame struct {
	Title string
	// Path is the address of the page without the time, and At the time that was asked for; empty for now.
	Path, At string
	// Shown is the time that the page is about, and Observed until when the hub observed the fleet by then.
	Shown, Observed time.Time
	IsLoggedIn      bool
	Pages           []link
	Content         any
}

// link is an entry of the navigation.
type link struct {
	Name, Path string
	IsCurrent  bool
}

// IsGap reports whether the hub did not observe the fleet at the time that the page is about.
func (f frame) IsGap() bool { return f.Shown.Sub(f.Observed) > time.Minute }

// render writes a page. A page that cannot be rendered is a failure, and not half a page.
func (h *Handler) render(w http.ResponseWriter, status int, name string, f frame) {
	var out bytes.Buffer
	if err := h.templates[name].Execute(&out, f); err != nil {
		http.Error(w, "The page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the user has gone if it fails
}

// fail shows why there is no page.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	_, isLoggedIn := h.sessions.find(r)
	h.render(w, status, "failure.html", frame{Title: http.StatusText(status), IsLoggedIn: isLoggedIn,
		Pages: listLinks("", ""), Content: message})
}

// newPageHandler returns the handler of a page: it queries as the user, and renders the answers.
func (h *Handler) newPageHandler(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found, ok := h.sessions.find(r)
		if !ok {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		at, err := parseTime(r.URL.Query().Get("at"), h.options.Now())
		if err != nil {
			h.fail(w, r, http.StatusBadRequest, err.Error())
			return
		}
		reader := &reader{Inventory: found.inventory, at: at}
		content, err := p.read(r.Context(), reader, r)
		switch {
		case errors.Is(err, ErrLogin): // the token has been revoked
			h.sessions.end(r)
			http.Redirect(w, r, "/login", http.StatusSeeOther)
		case errors.Is(err, errNotFound):
			h.fail(w, r, http.StatusNotFound, err.Error())
		case errors.Is(err, inventory.ErrRefused):
			h.fail(w, r, http.StatusBadRequest, err.Error())
		case err != nil:
			h.fail(w, r, http.StatusServiceUnavailable, err.Error())
		default:
			h.render(w, http.StatusOK, p.template, frame{Title: p.buildTitle(r), Path: r.URL.Path,
				At: r.URL.Query().Get("at"), Shown: reader.shown, Observed: reader.observed, IsLoggedIn: true,
				Pages: listLinks(r.URL.Path, r.URL.Query().Get("at")), Content: content})
		}
	}
}

// errNotFound is wrapped by errors about an object that the user does not see, or that did not exist at the time.
var errNotFound = errors.New("not found")

// parseTime returns the time of a page; nil for now.
func parseTime(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := inventory.ParseTime(text, now)
	if err != nil {
		return nil, err
	}
	return &at, nil
}

// reader asks all queries of a page about the same time.
type reader struct {
	Inventory
	at              *time.Time
	shown, observed time.Time
}

// read returns the rows of a query, each as a map from the columns to the values.
func (r *reader) read(ctx context.Context, sql string, arguments map[string]string) ([]row, error) {
	answer, err := r.Query(ctx, inventory.Request{SQL: sql, Arguments: arguments, At: r.at})
	if err != nil {
		return nil, err
	}
	if r.at == nil { // what follows is about the same time
		r.at = &answer.At
	}
	r.shown, r.observed = answer.At, answer.Observed[inventory.FromHub]
	rows := make([]row, 0, len(answer.Rows))
	for _, values := range answer.Rows {
		one := row{}
		for i, name := range answer.Columns {
			one[name] = values[i]
		}
		rows = append(rows, one)
	}
	return rows, nil
}

// row is a row of an answer.
type row map[string]any

// Text returns a value as a text; empty for NULL.
func (r row) Text(column string) string {
	if r[column] == nil {
		return ""
	}
	return fmt.Sprint(r[column])
}

// Or returns a value as a text, and the alternative for NULL.
func (r row) Or(column, alternative string) string { return cmp.Or(r.Text(column), alternative) }
