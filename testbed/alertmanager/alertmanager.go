// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alertmanager runs a real Alertmanager on loopback, alone or as replicas that share what they notified of, and
// a receiver of webhooks that keeps what Alertmanager notified of.
//
// Inputs are binaries (package build), a configuration and a folder. It knows nothing of which alerts there are.
package alertmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

const (
	readyLimit  = 2 * time.Minute
	answerLimit = 16 << 20
	dataDir     = "data"
	configFile  = "alertmanager.yaml"
)

// ErrRefused says that Alertmanager does not accept a configuration; the error carries its reasons.
var ErrRefused = errors.New("refused by Alertmanager")

// Options say what to run. All fields but Args are required.
type Options struct {
	// Dir is a folder of the server's own: empty, or with the data of an earlier one. Stop leaves it.
	Dir string
	// Binary is the path of build.Alertmanager.
	Binary string
	// Config is the configuration file.
	Config []byte
	// Args are further flags.
	Args []string
}

// Server is a running Alertmanager.
type Server struct {
	opts    Options
	address string
	process *process.Process
	// gossip is where a replica listens for the others, as host:port; empty for a server that is alone.
	gossip string
	peers  []string // of a replica: where the others listen
}

// Start runs Alertmanager and returns when it answers. On an error nothing is left running, and the error carries the
// end of its log.
func Start(ctx context.Context, opts Options) (*Server, error) {
	s, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	err = loopback.OnFreePorts(ctx, 1, func(ports []int) error {
		s.address = loopback.Address(ports[0])
		return s.launch(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("start Alertmanager: %w", err)
	}
	return s, nil
}

// prepare writes the files of a server that is not started yet.
func prepare(opts Options) (*Server, error) {
	s := &Server{opts: opts}
	for _, folder := range []string{dataDir, "logs", "run"} {
		if err := os.MkdirAll(s.path(folder), 0o700); err != nil {
			return nil, fmt.Errorf("create folder: %w", err)
		}
	}
	return s, s.write(opts.Config)
}

// launch starts the process on the server's address and data. Without an address for gossip, nothing but the API
// listens.
func (s *Server) launch(ctx context.Context) error {
	args := []string{
		"--config.file", s.path(configFile), "--storage.path", s.path(dataDir),
		"--web.listen-address", s.address, "--cluster.listen-address", s.gossip,
	}
	for _, peer := range s.peers {
		args = append(args, "--cluster.peer", peer)
	}
	p, err := process.Start(process.Spec{
		Name: build.Alertmanager, Path: s.opts.Binary, Args: append(args, s.opts.Args...),
		Log: process.LogPath(s.opts.Dir, build.Alertmanager), Dir: s.path("run"),
	})
	if err != nil {
		return err
	}
	if err := p.WaitReady(ctx, readyLimit, func(ctx context.Context) error {
		_, err := s.call(ctx, http.MethodGet, "/-/ready", nil)
		return err
	}); err != nil {
		p.Kill()
		return err
	}
	s.process = p
	return nil
}

func (s *Server) path(name string) string { return filepath.Join(s.opts.Dir, name) }

func (s *Server) write(config []byte) error {
	if err := os.WriteFile(s.path(configFile), config, 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// Address is where the API and the metrics are, as host:port.
func (s *Server) Address() string { return s.address }

// URL is where the API is.
func (s *Server) URL() string { return "http://" + s.address }

// Process returns the running process.
func (s *Server) Process() *process.Process { return s.process }

// SetConfig replaces the configuration of the running server. If it refuses it (ErrRefused), it continues with the
// previous one, also after a restart.
func (s *Server) SetConfig(ctx context.Context, config []byte) error {
	if err := s.write(config); err != nil {
		return err
	}
	if _, err := s.call(ctx, http.MethodPost, "/-/reload", nil); err != nil {
		err = fmt.Errorf("reload: %w: %w; its log ends with:\n%s", ErrRefused, err, s.process.Tail())
		return errors.Join(err, s.write(s.opts.Config))
	}
	s.opts.Config = config
	return nil
}

// call sends a request, with a body in JSON where there is one, and returns the body of the answer, whose status must
// be 200.
func (s *Server) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("read answer to %s %s: %w", method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, strings.TrimSpace(string(answer)))
	}
	return answer, nil
}

// Stop ends the server, which writes its notification log and its silences. Its data stay.
func (s *Server) Stop(ctx context.Context) { s.process.Stop(ctx) }

// Kill ends the process as a crash would.
func (s *Server) Kill() { s.process.Kill() }

// Restart starts an ended server again, at the same address and with the same data. It stops one that still runs.
func (s *Server) Restart(ctx context.Context) error {
	s.Stop(ctx)
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("restart Alertmanager: %w", err)
	}
	return nil
}

// Check has amtool, which is the path of build.Amtool, check a configuration. The error is ErrRefused with what amtool
// says.
func Check(ctx context.Context, amtool string, config []byte) error {
	_, err := onFile(config, func(path string) (string, error) { return run(ctx, amtool, "check-config", path) })
	return err
}

// Receiver asks amtool which receiver an alert with these labels, as NAME=VALUE, reaches by a configuration. Several
// are separated by commas.
func Receiver(ctx context.Context, amtool string, config []byte, labels ...string) (string, error) {
	return onFile(config, func(path string) (string, error) {
		return run(ctx, amtool, append([]string{"config", "routes", "test", "--config.file", path}, labels...)...)
	})
}

// onFile calls use with a temporary file.
func onFile(content []byte, use func(path string) (string, error)) (string, error) {
	file, err := os.CreateTemp("", "alertmanager-*.yaml")
	if err != nil {
		return "", fmt.Errorf("create configuration: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	return use(file.Name())
}

func run(ctx context.Context, amtool string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, amtool, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("amtool %s: %w: %w: %s", args[0], ErrRefused, err, text)
	}
	return text, nil
}
