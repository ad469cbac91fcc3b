// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// cookieName has the prefix with which browsers accept it over HTTPS only, from this host, for all paths.
	cookieName         = "__Host-bellwether"
	insecureCookieName = "bellwether"
	// sessionLifetime is how long a session lasts after its last page, and maxLifetime how long after its login.
	sessionLifetime, maxLifetime = time.Hour, 12 * time.Hour
	// maxSessions is how many users can be logged in.
	maxSessions = 1000
	// maxForm is how many bytes a form may have.
	maxForm = 64 << 10
)

// sessions are the users who are logged in. They are in memory only: after a restart, users log in again.
type sessions struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]*session
}

// session is a user who is logged in. The inventory has the user's token.
type session struct {
	inventory        Inventory
	lastUse, loginAt time.Time
}

// find returns the session of a request.
func (s *sessions) find(r *http.Request) (*session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.known[readCookie(r)]
	if found == nil || s.isOver(found) {
		return nil, false
	}
	found.lastUse = s.now()
	return found, true
}

func (s *sessions) isOver(one *session) bool {
	return s.now().Sub(one.lastUse) > sessionLifetime || s.now().Sub(one.loginAt) > maxLifetime
}

// begin returns the secret name of a new session.
func (s *sessions) begin(i Inventory) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(_ string, one *session) bool { return s.isOver(one) })
	if len(s.known) >= maxSessions {
		return "", errors.New("too many users are logged in: try again later")
	}
	if s.known == nil {
		s.known = map[string]*session{}
	}
	name := rand.Text()
	s.known[name] = &session{inventory: i, lastUse: s.now(), loginAt: s.now()}
	return name, nil
}

// end ends the session of a request.
func (s *sessions) end(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, readCookie(r))
}

// readCookie returns the name of the session; empty if there is none.
func readCookie(r *http.Request) string {
	for _, name := range []string{cookieName, insecureCookieName} {
		if cookie, err := r.Cookie(name); err == nil {
			return cookie.Value
		}
	}
	return ""
}

// buildCookie returns the cookie of a session. Without a name, it removes the cookie.
func (h *Handler) buildCookie(name string) *http.Cookie {
	cookie := &http.Cookie{ //nolint:gosec // it is secure unless the console is on loopback
		Name: cookieName, Value: name, Path: "/", HttpOnly: true, Secure: !h.options.IsInsecure,
		SameSite: http.SameSiteStrictMode,
	}
	if h.options.IsInsecure {
		cookie.Name = insecureCookieName
	}
	if name == "" {
		cookie.MaxAge = -1
	}
	return cookie
}

// showLogin shows the form in which users enter a token.
func (h *Handler) showLogin(w http.ResponseWriter, _ *http.Request) {
	h.render(w, http.StatusOK, "login.html", frame{Title: "Log in", Content: ""})
}

// login begins a session if the hub accepts the token.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	found, err := h.options.Login(r.Context(), strings.TrimSpace(r.PostFormValue("token")))
	var name string
	if err == nil {
		name, err = h.sessions.begin(found)
	}
	if err != nil {
		status := http.StatusServiceUnavailable
		if errors.Is(err, ErrLogin) {
			status = http.StatusUnauthorized
		}
		h.render(w, status, "login.html", frame{Title: "Log in", Content: err.Error()})
		return
	}
	http.SetCookie(w, h.buildCookie(name))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout ends the session.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	h.sessions.end(r)
	http.SetCookie(w, h.buildCookie(""))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
