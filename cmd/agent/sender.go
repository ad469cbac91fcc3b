// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/oauth2"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/alerts/telemetry"
	"github.com/bellwether-dev/bellwether/controllers/hub/sendertoken"
	"github.com/bellwether-dev/bellwether/internal/outbound"
)

// senderFlags configure how measurements of the cluster are sent to the hub's Prometheus.
type senderFlags struct {
	url, caFile, rules string
	tokenSecret        string
}

// addFlags adds the flags.
func (f *senderFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.url, "remote-write-url", "",
		"where the agent sends slices that it makes itself, for a cluster without a Prometheus, as in "+
			"https://metrics.hub.example.com/api/v1/write; empty: it makes none")
	fs.StringVar(&f.caFile, "remote-write-ca-file", "",
		"file with the certificates of the authorities that sign the receiver's certificate")
	fs.StringVar(&f.rules, "edge-rules", "",
		"file with the edge part of the rules, for slices that the agent makes itself (default: the edge part of the "+
			"default profile)")
	fs.StringVar(&f.tokenSecret, "remote-write-token-secret", "",
		"Secret, as NAMESPACE/NAME, in which the agent keeps a token for the cluster's Prometheus to send slices with")
}

// addSender adds the sender of slices, and the publisher of tokens for the cluster's
// Prometheus, if flags enable them.
func (p *process) addSender(hub ctrl.Manager, local cluster.Cluster, t target) error {
	f := p.flags.sender
	tokens := sendertoken.Source{Hub: hub.GetClient(), Namespace: t.namespace}
	if name := f.tokenSecret; name != "" {
		namespace, name, ok := strings.Cut(name, "/")
		if !ok || namespace == "" || name == "" {
			return fmt.Errorf("invalid value %q of --remote-write-token-secret: use NAMESPACE/NAME", f.tokenSecret)
		}
		if err := hub.Add(&sendertoken.Publisher{Source: tokens, Local: local.GetClient(),
			Secret: types.NamespacedName{Namespace: namespace, Name: name}}); err != nil {
			return fmt.Errorf("add publisher of tokens: %w", err)
		}
	}
	if f.url == "" {
		return nil
	}
	groups, err := f.readGroups()
	if err != nil {
		return err
	}
	evaluator, err := telemetry.NewEvaluator(t.cluster, groups)
	if err != nil {
		return fmt.Errorf("use --edge-rules: %w", err)
	}
	transport, err := outbound.Credentials{CAFile: f.caFile}.Transport()
	if err != nil {
		return fmt.Errorf("use --remote-write-ca-file: %w", err)
	}
	log := ctrl.Log.WithName("sender")
	sender, err := telemetry.NewSender(evaluator, telemetry.SenderOptions{
		Registry: t.metrics, URL: f.url, Now: time.Now,
		Metrics: prometheus.WrapRegistererWith(prometheus.Labels{series.Cluster: t.cluster}, t.metrics),
		Client: outbound.NewClient(&oauth2.Transport{Base: transport,
			Source: oauth2.ReuseTokenSourceWithExpiry(nil, tokens, tokenRenewalMargin)}, maxAnswer),
		Report: func(err error) {
			if err != nil {
				log.Error(err, "Cannot send slices")
				return
			}
			log.Info("Sends slices again")
		},
	})
	if err != nil {
		return err
	}
	return hub.Add(sender)
}

// maxAnswer limits the response of a receiver. Real responses are smaller.
const maxAnswer = 1 << 20

// tokenRenewalMargin is how long before its expiry a token is renewed.
const tokenRenewalMargin = 30 * time.Minute

var errNoRules = errors.New("no rules in it")

// readGroups returns the rule groups of the edge part. It reads the file of --edge-rules;
// without that flag, it builds the groups of the default profile.
func (f senderFlags) readGroups() ([]monitoringv1.RuleGroup, error) {
	if f.rules == "" {
		rules, err := slo.BuildPart(slo.Set{Default: slo.DefaultProfile()}, slo.Edge)
		if err != nil {
			return nil, fmt.Errorf("make the edge part of the rules: %w", err)
		}
		return rules.All(), nil
	}
	text, err := os.ReadFile(f.rules)
	if err != nil {
		return nil, fmt.Errorf("read --edge-rules: %w", err)
	}
	var spec monitoringv1.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		return nil, fmt.Errorf("read --edge-rules %s: %w", f.rules, err)
	}
	if len(spec.Groups) == 0 {
		return nil, fmt.Errorf("read --edge-rules %s: %w", f.rules, errNoRules)
	}
	return spec.Groups, nil
}
