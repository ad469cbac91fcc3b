// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server is the HTTP server that the sample operator deploys: it
// answers every request for / with its message.
package server

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
)

// Config is how a server answers.
type Config struct {
	Message   string
	Uppercase bool
	Version   string
	Pod       string // the pod's name
	Fault     plan.Fault
	Address   string // host:port to listen on
}

// Answer is the body of every answer.
type Answer struct {
	Message string `json:"message"`
	Version string `json:"version"`
	Pod     string `json:"pod"`
}

// ConfigFromEnv reads the environment that the operator gives to its servers:
// ECHO_MESSAGE, ECHO_UPPERCASE, ECHO_VERSION, ECHO_FAULT, POD_NAME and POD_IP.
// Without POD_IP the server listens on loopback.
func ConfigFromEnv(getenv func(string) string) (Config, error) {
	fault, err := plan.ParseFault(getenv("ECHO_FAULT"))
	if err != nil {
		return Config{}, fmt.Errorf("read ECHO_FAULT: %w", err)
	}
	c := Config{
		Message: getenv("ECHO_MESSAGE"),
		Version: getenv("ECHO_VERSION"),
		Pod:     getenv("POD_NAME"),
		Fault:   fault,
	}
	if s := getenv("ECHO_UPPERCASE"); s != "" {
		if c.Uppercase, err = strconv.ParseBool(s); err != nil {
			return Config{}, fmt.Errorf("read ECHO_UPPERCASE: %w", err)
		}
	}
	host := getenv("POD_IP")
	if host == "" {
		host = "127.0.0.1"
	}
	c.Address = net.JoinHostPort(host, strconv.Itoa(plan.ServerPort))
	return c, nil
}

// New returns the server's routes. /healthz answers 200 even with a fault:
// health checks see a live process, only its users see the errors.
func New(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		c.write(w, http.StatusOK)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		if c.Fault == plan.FaultHalf {
			c.write(w, http.StatusInternalServerError)
			return
		}
		c.write(w, http.StatusOK)
	})
	return mux
}

func (c Config) write(w http.ResponseWriter, code int) {
	a := Answer{Message: c.Message, Version: c.Version, Pod: c.Pod}
	if c.Uppercase {
		a.Message = strings.ToUpper(a.Message)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The client may be gone; there is no one to tell.
	_ = json.NewEncoder(w).Encode(a)
}
