// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// Secrets of the hub's namespace that policies of the platform may name: those of the service, of a webhook and of the
// heartbeat. The hub may read no others there.
const (
	PagingSecret    = "pagerduty"
	TicketSecret    = "tracker"
	HeartbeatSecret = "heartbeat"
)

// hubNamespace is the one that the command line installs the hub in.
const hubNamespace = "bellwether-system"

// readableSecrets are arguments of install hub.
func readableSecrets() []string {
	var args []string
	for i, name := range []string{PagingSecret, TicketSecret, HeartbeatSecret} {
		args = append(args, "--set", fmt.Sprintf("hub.paging.secrets[%d].namespace=%s", i, hubNamespace),
			"--set", fmt.Sprintf("hub.paging.secrets[%d].name=%s", i, name))
	}
	return args
}

// PagingService is the service of the Events API that policies of the platform may page.
const PagingService = "oncall"

// startDelay is that of the guide: Alertmanager waits until Prometheus has sent it what fires.
const startDelay = "--dispatch.start-delay=2m"

// Groups are gathered and repeated in these times in place of those that the hub writes, which a fleet that lives for a
// few minutes cannot wait for.
var groupTimes = map[string]string{"group_wait": "5s", "group_interval": "10s"}

// pager is a local Events API, and an Alertmanager once there is a configuration for it.
type pager struct {
	events *pagerduty.Server
	// folder has the files of the hub's Secret.
	folder   string
	follower *follower
	options  alertmanager.Options
	// started has Prometheus send its alerts to an Alertmanager at an address.
	started func(ctx context.Context, address string) error

	mu      sync.Mutex
	manager *alertmanager.Server
	// configured says that the Alertmanager has the hub's configuration.
	configured bool
}

// unconfigured is the configuration of an Alertmanager that the hub has written none for: nobody is notified.
const unconfigured = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"

// startPaging follows the Secret that the hub makes of PagingPolicies, as the pod of an Alertmanager does that mounts
// it.
func (p *Platform) startPaging(ctx context.Context, client kubernetes.Interface, binary string) (*pager, error) {
	dir := filepath.Join(p.Fleet.Dir(), "alertmanager")
	s := &pager{folder: filepath.Join(dir, "config"), options: alertmanager.Options{
		Dir: dir, Binary: binary, Args: []string{startDelay}}}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	var err error
	if s.events, err = pagerduty.Start(ctx, pagerduty.Options{Services: []string{PagingService}}); err != nil {
		return nil, err
	}
	s.started = func(ctx context.Context, address string) error {
		return p.monitoring.SetAlertmanagers(ctx, address)
	}
	s.follower = &follower{
		server: "alertmanager", label: v1alpha1.LabelPaging, files: secretFiles, load: s.load, say: p.say,
		informer: func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Secrets().Informer()
		},
	}
	if p.opts.Silencing {
		if err := s.launch(ctx, []byte(unconfigured)); err != nil {
			s.events.Close()
			return nil, err
		}
	}
	if err := s.follower.start(ctx, client); err != nil {
		if s.manager != nil {
			s.manager.Stop(ctx)
		}
		s.events.Close()
		return nil, err
	}
	return s, nil
}

func (s *pager) stop(ctx context.Context) {
	s.follower.end()
	if s.manager != nil {
		s.manager.Stop(ctx)
	}
	s.events.Close()
}

// running is the Alertmanager once it has the hub's configuration.
func (s *pager) running() *alertmanager.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.configured {
		return nil
	}
	return s.manager
}

// secretFiles are the files of the Secret that the hub writes for Alertmanager; none if there is no such Secret.
func secretFiles(secrets []any) (map[string][]byte, error) {
	for _, object := range secrets {
		secret, ok := object.(*corev1.Secret)
		if !ok || secret.Name != paging.SecretName {
			continue
		}
		files := map[string][]byte{}
		for key, content := range secret.Data {
			files[key] = content
		}
		config, written := files[paging.ConfigFile]
		if !written {
			continue
		}
		var err error
		if files[paging.ConfigFile], err = hastenGroups(config); err != nil {
			return nil, fmt.Errorf("read %s of Secret %s/%s: %w", paging.ConfigFile, secret.Namespace, secret.Name, err)
		}
		return files, nil
	}
	return nil, nil
}

// load writes the files and starts Alertmanager with them, or has it load them again. A file that is gone stays: the
// configuration does not name it any more.
func (s *pager) load(ctx context.Context, files map[string][]byte) error {
	config := files[paging.ConfigFile]
	if config == nil {
		return nil
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(s.folder, filepath.Base(name)), content, 0o600); err != nil {
			return fmt.Errorf("write file of the Secret: %w", err)
		}
	}
	if s.manager == nil {
		if err := s.launch(ctx, config); err != nil {
			return err
		}
	} else if err := s.manager.SetConfig(ctx, config); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configured = true
	return nil
}

// launch starts the Alertmanager, and has Prometheus send its alerts there. It is called by one goroutine at a time.
func (s *pager) launch(ctx context.Context, config []byte) error {
	s.options.Config = config
	manager, err := alertmanager.Start(ctx, s.options)
	if err != nil {
		return err
	}
	if err := s.started(ctx, manager.Address()); err != nil {
		manager.Stop(ctx)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.manager = manager
	return nil
}

// hastenGroups has groups of alerts gathered and repeated soon, on all routes.
func hastenGroups(config []byte) ([]byte, error) {
	var file map[string]any
	if err := yaml.Unmarshal(config, &file); err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	hastenRoute(file["route"])
	return yaml.Marshal(file)
}

func hastenRoute(route any) {
	fields, ok := route.(map[string]any)
	if !ok {
		return
	}
	for name, time := range groupTimes {
		if _, set := fields[name]; set {
			fields[name] = time
		}
	}
	routes, _ := fields["routes"].([]any)
	for _, child := range routes {
		hastenRoute(child)
	}
}

// Alertmanager returns the server that notifies of the platform's alerts. It is nil without Options.Monitoring, and
// until a PagingPolicy with the scope Fleet is in force.
func (p *Platform) Alertmanager() *alertmanager.Server {
	if p.monitoring == nil {
		return nil
	}
	return p.monitoring.pager.running()
}

// Events returns the Events API that policies may page, by its service PagingService; or nil without
// Options.Monitoring.
func (p *Platform) Events() *pagerduty.Server {
	if p.monitoring == nil {
		return nil
	}
	return p.monitoring.pager.events
}
