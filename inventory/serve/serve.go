// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve answers queries of the inventory over HTTP, for users whom the hub's API server knows. It decides
// nothing: what a user sees is decided by inventory.DecideVisible, and what a query may do by package store.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/inventory"
)

// maxRequest is how many bytes a request may have.
const maxRequest = 256 << 10

var (
	// ErrUnauthenticated is wrapped by errors about a user who is not known.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden is wrapped by errors about a user who sees nothing.
	ErrForbidden = errors.New("forbidden")
	// ErrUnavailable is wrapped by errors after which the same request may succeed later.
	ErrUnavailable = errors.New("unavailable")
)

// Inventory answers queries.
type Inventory interface {
	// Query answers a query. Errors of the query wrap inventory.ErrRefused.
	Query(ctx context.Context, q inventory.Query) (*inventory.Answer, error)
}

// Users finds out what a user may see.
type Users interface {
	// FindVisible returns what the user with a bearer token sees. The error wraps ErrUnauthenticated if the token
	// is not valid.
	FindVisible(ctx context.Context, token string) (inventory.Visible, error)
}

// Handler answers queries.
type Handler struct {
	Inventory Inventory
	Users     Users
	Now       func() time.Time
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := h.answer(w, r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	body, encodeErr := json.Marshal(answer)
	if encodeErr != nil && err == nil {
		err = fmt.Errorf("%w: a value cannot be encoded: %w", inventory.ErrRefused, encodeErr)
	}
	if err != nil {
		body, _ = json.Marshal(inventory.Failure{Error: err.Error()}) // texts can always be encoded
		w.WriteHeader(findStatus(err))
	}
	_, _ = w.Write(append(body, '\n')) // the client is gone if it fails
}

// findStatus returns the status of HTTP for an error.
func findStatus(err error) int {
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return http.StatusUnauthorized
	case errors.Is(err, ErrForbidden):
		return http.StatusForbidden
	case errors.Is(err, errNoSuchPath):
		return http.StatusNotFound
	case errors.Is(err, inventory.ErrRefused):
		return http.StatusBadRequest
	case errors.Is(err, ErrUnavailable):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

var errNoSuchPath = errors.New("queries are sent to " + inventory.QueryPath + " by POST")

// answer authenticates the user and answers the query.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) (*inventory.Answer, error) {
	if r.URL.Path != inventory.QueryPath || r.Method != http.MethodPost {
		return nil, errNoSuchPath
	}
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer || token == "" {
		return nil, fmt.Errorf("%w: send a token of the hub's API server, as in Authorization: Bearer TOKEN",
			ErrUnauthenticated)
	}
	visible, err := h.Users.FindVisible(r.Context(), token)
	if err != nil {
		return nil, err
	}
	if !visible.AllClusters && !visible.AllNamespaces && len(visible.Clusters)+len(visible.Namespaces) == 0 {
		return nil, fmt.Errorf("%w: you may list ManagedOperators in no namespace of the hub, so you see nothing "+
			"of the inventory", ErrForbidden)
	}
	var request inventory.Request
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return nil, fmt.Errorf("%w: the request cannot be decoded: %w", inventory.ErrRefused, err)
	}
	query, err := resolve(request, h.Now())
	if err != nil {
		return nil, err
	}
	query.Visible = visible
	return h.Inventory.Query(r.Context(), query)
}

// resolve returns the query of a request.
func resolve(r inventory.Request, now time.Time) (inventory.Query, error) {
	q := inventory.Query{SQL: r.SQL, Arguments: r.Arguments, At: now}
	if r.At != nil {
		q.At = *r.At
	}
	switch {
	case q.At.After(now.Add(time.Minute)):
		return q, fmt.Errorf("%w: %s is in the future", inventory.ErrRefused, inventory.FormatTime(q.At))
	case (r.SQL == "") == (r.Question == ""):
		return q, fmt.Errorf("%w: it needs either a statement or the name of a question", inventory.ErrRefused)
	case r.SQL != "":
		return q, nil
	}
	question, ok := inventory.FindQuestion(r.Question)
	if !ok {
		var names []string
		for _, known := range inventory.Questions() {
			names = append(names, known.Name)
		}
		return q, fmt.Errorf("%w: there is no question %q: the questions are %s", inventory.ErrRefused, r.Question,
			strings.Join(names, ", "))
	}
	q.SQL = question.SQL
	var err error
	q.Arguments, err = resolveArguments(question, r.Arguments, q.At)
	return q, err
}

// resolveArguments returns the values of all parameters of a question that is asked about a time.
func resolveArguments(q inventory.Question, given map[string]string, at time.Time) (map[string]string, error) {
	arguments := map[string]string{}
	for _, p := range q.Parameters {
		value, ok := given[p.Name]
		switch {
		case !ok && !p.IsOptional:
			return nil, fmt.Errorf("%w: the question %s needs %s=VALUE: %s, such as %s=%s", inventory.ErrRefused,
				q.Name, p.Name, p.Doc, p.Name, p.Example)
		case !ok:
			value = p.Example
		}
		if p.Name == inventory.SinceParameter {
			since, err := inventory.ParseTime(value, at)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %w", inventory.ErrRefused, p.Name, err)
			}
			value = inventory.FormatTime(since)
		}
		arguments[p.Name] = value
	}
	for name := range given {
		if _, ok := arguments[name]; !ok {
			return nil, fmt.Errorf("%w: the question %s has no parameter %q", inventory.ErrRefused, q.Name, name)
		}
	}
	return arguments, nil
}
