// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// OutOfOrderWindow is the maximum age of a sample when it arrives at the hub's Prometheus. A sender
// drops older samples. Prometheus itself keeps about as much data for a receiver that is not available.
const OutOfOrderWindow = 2 * time.Hour

// Keys of the Secrets of a Sender.
const (
	SenderTokenKey = "token"
	SenderCAKey    = "ca.crt"
)

// ErrSender is wrapped by errors about an invalid Sender.
var ErrSender = errors.New("invalid sender")

// Sender is the Prometheus of one cluster, which evaluates the
// edge part of the rules and sends series to the hub's Prometheus.
type Sender struct {
	// Cluster is the FleetCluster's name.
	Cluster string
	// URL of the receiver, with its path.
	URL string
	// Token has the bearer token, and CA the certificates of the authority that signed the receiver's certificate:
	// the names of Secrets, or of files for Configuration. Empty: no token, and the authorities of the system.
	Token, CA string
}

// Check returns an error if the sender is invalid.
func (s Sender) Check() error {
	if errs := validation.IsDNS1123Subdomain(s.Cluster); len(errs) > 0 {
		return fmt.Errorf("%w: %q is not the name of a cluster: %s", ErrSender, s.Cluster, errs[0])
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: %q is not a URL such as https://metrics.example.com/api/v1/write", ErrSender, s.URL)
	}
	if u.User != nil {
		return fmt.Errorf("%w: the URL has a password in it", ErrSender)
	}
	return nil
}

// senderName identifies the sender in the metrics of a Prometheus.
const senderName = "bellwether"

// replicas are the labels by which prometheus-operator distinguishes the
// replicas of a Prometheus. Slices of two replicas would be counted twice.
const replicas = "prometheus|prometheus_replica"

// sendLabels are the labels that decide whether a series is sent.
var sendLabels = []string{series.Cluster, model.MetricNameLabel}

// buildKeepRegex returns the regular expression of the values of sendLabels. It matches
// one cluster, because a Prometheus that serves several clusters has a sender for each,
// and a receiver may refuse a whole request that contains a series of another cluster.
func (s Sender) buildKeepRegex() string {
	return regexp.QuoteMeta(s.Cluster) + ";(" + TravellingRegex() + ")"
}

// Parts of a configuration file of Prometheus.
type (
	senderConfig struct {
		Global struct {
			ExternalLabels map[string]string `json:"external_labels"`
		} `json:"global"`
		RemoteWrite []remoteWrite `json:"remote_write"`
	}
	remoteWrite struct {
		Name          string         `json:"name"`
		URL           string         `json:"url"`
		Authorization *authorization `json:"authorization,omitempty"`
		TLS           *tlsConfig     `json:"tls_config,omitempty"`
		Relabel       []relabelling  `json:"write_relabel_configs"`
		Queue         queueConfig    `json:"queue_config"`
		Metadata      metadataConfig `json:"metadata_config"`
	}
	authorization struct {
		File string `json:"credentials_file"`
	}
	tlsConfig struct {
		CAFile string `json:"ca_file"`
	}
	relabelling struct {
		Source []string `json:"source_labels,omitempty"`
		Action string   `json:"action"`
		Regex  string   `json:"regex"`
	}
	queueConfig struct {
		MaxShards      int    `json:"max_shards"`
		MaxBackoff     string `json:"max_backoff"`
		RetryOn429     bool   `json:"retry_on_http_429"`
		SampleAgeLimit string `json:"sample_age_limit"`
	}
	metadataConfig struct {
		Send bool `json:"send"`
	}
)

const (
	// maxShards limits the concurrent requests of a cluster. One
	// shard can send the samples of two hours within a minute.
	maxShards = 2
	// maxBackoff limits how long after an outage no samples arrive.
	maxBackoff = 30 * time.Second
)

// Configuration returns the part of a configuration file of Prometheus that sends the series of series.Travelling.
func (s Sender) Configuration() ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	var c senderConfig
	c.Global.ExternalLabels = map[string]string{series.Cluster: s.Cluster}
	write := remoteWrite{
		Name: senderName, URL: s.URL,
		Relabel: []relabelling{
			{Source: sendLabels, Action: "keep", Regex: s.buildKeepRegex()},
			{Action: "labeldrop", Regex: replicas},
		},
		Queue: queueConfig{MaxShards: maxShards, MaxBackoff: formatDuration(maxBackoff), RetryOn429: true,
			SampleAgeLimit: formatDuration(OutOfOrderWindow)},
	}
	if s.Token != "" {
		write.Authorization = &authorization{s.Token}
	}
	if s.CA != "" {
		write.TLS = &tlsConfig{s.CA}
	}
	c.RemoteWrite = []remoteWrite{write}
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return text, nil
}

// PrometheusSpec is the configuration of a Sender as a part of the
// spec of a Prometheus or PrometheusAgent of prometheus-operator.
type PrometheusSpec struct {
	ExternalLabels map[string]string              `json:"externalLabels"`
	RemoteWrite    []monitoringv1.RemoteWriteSpec `json:"remoteWrite"`
}

// PrometheusSpec returns the configuration for prometheus-operator.
func (s Sender) PrometheusSpec() (PrometheusSpec, error) {
	if err := s.Check(); err != nil {
		return PrometheusSpec{}, err
	}
	write := monitoringv1.RemoteWriteSpec{
		Name: ptr.To(senderName), URL: monitoringv1.URL(s.URL),
		WriteRelabelConfigs: []monitoringv1.RelabelConfig{{Action: "keep", Regex: s.buildKeepRegex()},
			{Action: "labeldrop", Regex: replicas}},
		QueueConfig: &monitoringv1.QueueConfig{MaxShards: maxShards, RetryOnRateLimit: true,
			MaxBackoff:     ptr.To(monitoringv1.Duration(formatDuration(maxBackoff))),
			SampleAgeLimit: ptr.To(monitoringv1.Duration(formatDuration(OutOfOrderWindow)))},
		MetadataConfig: &monitoringv1.MetadataConfig{Send: false},
	}
	for _, name := range sendLabels {
		write.WriteRelabelConfigs[0].SourceLabels = append(write.WriteRelabelConfigs[0].SourceLabels,
			monitoringv1.LabelName(name))
	}
	if s.Token != "" {
		write.Authorization = &monitoringv1.Authorization{
			SafeAuthorization: monitoringv1.SafeAuthorization{Credentials: newKeySelector(s.Token, SenderTokenKey)}}
	}
	if s.CA != "" {
		write.TLSConfig = &monitoringv1.TLSConfig{SafeTLSConfig: monitoringv1.SafeTLSConfig{
			CA: monitoringv1.SecretOrConfigMap{Secret: newKeySelector(s.CA, SenderCAKey)}}}
	}
	return PrometheusSpec{map[string]string{series.Cluster: s.Cluster},
		[]monitoringv1.RemoteWriteSpec{write}}, nil
}

func newKeySelector(secret, key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key}
}
