// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/echo/server"
)

func TestServer(t *testing.T) {
	tests := map[string]struct {
		env      map[string]string
		path     string
		wantCode int
		want     server.Answer
	}{
		"good": {map[string]string{}, "/", 200, server.Answer{Message: "hi", Version: "1.0.0", Pod: "p"}},
		"uppercase": {map[string]string{"ECHO_UPPERCASE": "true"}, "/", 200,
			server.Answer{Message: "HI", Version: "1.0.0", Pod: "p"}},
		"faulty": {map[string]string{"ECHO_FAULT": "half"}, "/", 500,
			server.Answer{Message: "hi", Version: "1.0.0", Pod: "p"}},
		"faulty, health": {map[string]string{"ECHO_FAULT": "half"}, "/healthz", 200,
			server.Answer{Message: "hi", Version: "1.0.0", Pod: "p"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"ECHO_MESSAGE": "hi", "ECHO_VERSION": "1.0.0", "POD_NAME": "p"}
			for k, v := range tt.env {
				env[k] = v
			}
			config, err := server.ConfigFromEnv(func(k string) string { return env[k] })
			if err != nil {
				t.Fatal(err)
			}
			rec := httptest.NewRecorder()
			server.New(config).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, tt.path, nil))
			var got server.Answer
			if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if rec.Code != tt.wantCode {
				t.Errorf("code = %d, want %d", rec.Code, tt.wantCode)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigFromEnv(t *testing.T) {
	tests := map[string]struct {
		env     map[string]string
		address string
		wantErr bool
	}{
		"own address": {map[string]string{"POD_IP": "127.9.8.7"}, "127.9.8.7:8080", false},
		"loopback":    {nil, "127.0.0.1:8080", false},
		"bad fault":   {map[string]string{"ECHO_FAULT": "x"}, "", true},
		"bad bool":    {map[string]string{"ECHO_UPPERCASE": "x"}, "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := server.ConfigFromEnv(func(k string) string { return tt.env[k] })
			if (err != nil) != tt.wantErr || got.Address != tt.address {
				t.Errorf("address %q, error %v; want %q, error %v", got.Address, err, tt.address, tt.wantErr)
			}
		})
	}
}
