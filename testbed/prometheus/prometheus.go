// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus runs a real Prometheus server on loopback, which scrapes what a testbed runs and evaluates the
// rules that it is given, and fills one with history.
//
// Inputs are binaries (package build) and a folder. It knows neither which rules those are nor what they should say.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/loopback"
	"github.com/bellwether-dev/bellwether/testbed/process"
)

const (
	readyLimit = 2 * time.Minute
	dataDir    = "data"
	rulesDir   = "rules"
	configFile = "prometheus.yaml"
)

// ErrRefused says that Prometheus does not accept its configuration or rules; the error carries its reasons.
var ErrRefused = errors.New("refused by Prometheus")

// Options say what to run. Dir and Binary are required.
type Options struct {
	// Dir is a folder of the server's own: empty, or with the data of an earlier one or of Backfill. Stop leaves it.
	Dir string
	// Binary is the path of build.Prometheus.
	Binary string
	// Rules are rule files by name, which ends in .yaml.
	Rules map[string][]byte
	// Jobs say what to scrape.
	Jobs []Job
	// Alertmanagers are where alerts are sent, as host:port.
	Alertmanagers []string
	// Self adds the server's own metrics, as job prometheus, and those of Alertmanagers, as job alertmanager.
	Self bool
	// Interval is that of scrapes, and of rule groups that have none of their own. Zero means 15 s.
	Interval time.Duration
	// Lookback is how long a sample without successor counts. Zero means Prometheus's 5 minutes.
	Lookback time.Duration
	// Retention is how long samples are kept. Zero means 100 days, which is more than any budget period.
	Retention time.Duration
	// Receive accepts what other servers send.
	Receive bool
	// SendTo is a server that receives the series whose names match the regular expression Send.
	SendTo *Server
	Send   string
	// Further is further configuration, in YAML. It may say the same as what is above.
	Further []byte
	// Args are further flags.
	Args []string
}

// Server is a running Prometheus. What it has may be replaced by several goroutines.
type Server struct {
	reloading sync.Mutex // held while opts are read and replaced

	opts    Options
	address string
	process *process.Process
}

// Start runs Prometheus and returns when it answers queries. On an error nothing is left running, and the error carries
// the end of its log.
func Start(ctx context.Context, opts Options) (*Server, error) {
	s := &Server{opts: opts}
	for _, folder := range []string{dataDir, rulesDir, "logs", "run"} {
		if err := os.MkdirAll(filepath.Join(opts.Dir, folder), 0o700); err != nil {
			return nil, fmt.Errorf("create folder: %w", err)
		}
	}
	err := loopback.OnFreePorts(ctx, 1, func(ports []int) error {
		s.address = loopback.Address(ports[0])
		if err := s.write(s.opts); err != nil {
			return err
		}
		return s.launch(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	return s, nil
}

// launch starts the process on the server's address and data.
func (s *Server) launch(ctx context.Context) error {
	args := []string{
		"--config.file", s.path(configFile), "--storage.tsdb.path", s.path(dataDir),
		"--web.listen-address", s.address, "--web.enable-lifecycle",
		"--storage.tsdb.retention.time", duration(s.opts.Retention, 100*24*time.Hour),
		"--query.lookback-delta", duration(s.opts.Lookback, 5*time.Minute),
	}
	if s.opts.Receive {
		args = append(args, "--web.enable-remote-write-receiver")
	}
	p, err := process.Start(process.Spec{
		Name: build.Prometheus, Path: s.opts.Binary, Args: append(args, s.opts.Args...),
		Log: process.LogPath(s.opts.Dir, build.Prometheus), Dir: s.path("run"),
	})
	if err != nil {
		return err
	}
	if err := p.WaitReady(ctx, readyLimit, func(ctx context.Context) error {
		return s.call(ctx, http.MethodGet,
			"/-/ready")
	}); err != nil {
		p.Kill()
		return err
	}
	s.process = p
	return nil
}

func (s *Server) path(name string) string { return filepath.Join(s.opts.Dir, name) }

// write writes configuration and rules.
func (s *Server) write(opts Options) error {
	config, err := opts.config(s.address)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path(configFile), config, 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(s.path(rulesDir), "*"))
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	for _, path := range old {
		if _, keep := opts.Rules[filepath.Base(path)]; !keep {
			_ = os.Remove(path)
		}
	}
	for name, text := range opts.Rules {
		if err := os.WriteFile(filepath.Join(s.path(rulesDir), filepath.Base(name)), text, 0o600); err != nil {
			return fmt.Errorf("write rules: %w", err)
		}
	}
	return nil
}

// URL is where the API is.
func (s *Server) URL() string { return "http://" + s.address }

// Process returns the running process.
func (s *Server) Process() *process.Process { return s.process }

// SetRules replaces all rules of the running server. If it refuses them (ErrRefused), it goes on with those of before,
// also over a restart.
func (s *Server) SetRules(ctx context.Context, rules map[string][]byte) error {
	return s.reload(ctx, func(opts *Options) { opts.Rules = rules })
}

// SetJobs replaces what the running server scrapes.
func (s *Server) SetJobs(ctx context.Context, jobs ...Job) error {
	return s.reload(ctx, func(opts *Options) { opts.Jobs = jobs })
}

// SetAlertmanagers replaces where the running server sends alerts, as host:port.
func (s *Server) SetAlertmanagers(ctx context.Context, addresses ...string) error {
	return s.reload(ctx, func(opts *Options) { opts.Alertmanagers = addresses })
}

func (s *Server) reload(ctx context.Context, change func(*Options)) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	opts := s.opts
	change(&opts)
	if err := s.write(opts); err != nil {
		return err
	}
	if err := s.call(ctx, http.MethodPost, "/-/reload"); err != nil {
		err = fmt.Errorf("reload: %w: %w; its log ends with:\n%s", ErrRefused, err, s.process.Tail())
		return errors.Join(err, s.write(s.opts))
	}
	s.opts = opts
	return nil
}

// call wants status 200.
func (s *Server) call(ctx context.Context, method, path string) error {
	request, err := http.NewRequestWithContext(ctx, method, s.URL()+path, nil)
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

// Kill ends the process as a crash would.
func (s *Server) Kill() { s.process.Kill() }

// Restart starts an ended or killed server again, at the same address and with the same data.
func (s *Server) Restart(ctx context.Context) error {
	s.process.Kill()
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("restart Prometheus: %w", err)
	}
	return nil
}

// Stop ends the server. Its data stay.
func (s *Server) Stop(ctx context.Context) { s.process.Stop(ctx) }

// API returns a client of the server.
func (s *Server) API() (promv1.API, error) {
	client, err := api.NewClient(api.Config{Address: s.URL()})
	if err != nil {
		return nil, fmt.Errorf("make client of Prometheus: %w", err)
	}
	return promv1.NewAPI(client), nil
}

// Query evaluates PromQL that gives a vector, at a time; zero means now.
func (s *Server) Query(ctx context.Context, promql string, at time.Time) (model.Vector, error) {
	if at.IsZero() {
		at = time.Now()
	}
	client, err := s.API()
	if err != nil {
		return nil, err
	}
	value, _, _, err := client.Query(ctx, promql, at)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", promql, err)
	}
	switch v := value.(type) {
	case model.Vector:
		return v, nil
	case *model.Scalar:
		return model.Vector{{Metric: model.Metric{}, Value: v.Value, Timestamp: v.Timestamp}}, nil
	}
	return nil, fmt.Errorf("query %s: it gives a %s and no vector", promql, value.Type())
}

// ErrUnevaluated says that rules are loaded and were not all evaluated yet.
var ErrUnevaluated = errors.New("not evaluated yet")

// RuleState is how the loaded rules are.
type RuleState struct {
	Groups, Recording, Alerting int
}

// Evaluated counts the loaded rules. The error says whose last evaluation failed, or is ErrUnevaluated.
func (s *Server) Evaluated(ctx context.Context) (RuleState, error) {
	var state RuleState
	client, err := s.API()
	if err != nil {
		return state, err
	}
	loaded, err := client.Rules(ctx, nil)
	if err != nil {
		return state, fmt.Errorf("read rules: %w", err)
	}
	var errs []error
	state.Groups = len(loaded.Groups)
	for _, group := range loaded.Groups {
		for _, rule := range group.Rules {
			var name, lastError string
			var health promv1.RuleHealth
			switch r := rule.(type) {
			case promv1.RecordingRule:
				state.Recording++
				name, lastError, health = r.Name, r.LastError, r.Health
			case promv1.AlertingRule:
				state.Alerting++
				name, lastError, health = r.Name, r.LastError, r.Health
			}
			switch {
			case lastError != "":
				errs = append(errs, fmt.Errorf("rule %s of %s: %s", name, group.Name, lastError))
			case health != promv1.RuleHealthGood:
				errs = append(errs, fmt.Errorf("rule %s of %s: %w", name, group.Name, ErrUnevaluated))
			}
		}
	}
	return state, errors.Join(errs...)
}
