// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Credentials are the values that a probe uses from Secrets. They must not be logged or written to a status.
type Credentials struct {
	// Headers by name.
	Headers     map[string]string
	BearerToken string
	// CA, Certificate and Key are PEM.
	CA, Certificate, Key string
}

// ArePrivate reports whether there are credentials that only the target may receive. A CA is not private.
func (c *Credentials) ArePrivate() bool {
	return c != nil && (len(c.Headers) > 0 || c.BearerToken != "" || c.Key != "")
}

// minRedacted is the minimum length of a value to be redacted: shorter values would match parts of ordinary words.
const minRedacted = 4

// Redact replaces the secret values in a text, such as an error that quotes a server's response.
func (c *Credentials) Redact(text string) string {
	if c == nil {
		return text
	}
	values := []string{c.BearerToken, c.Key}
	for _, value := range c.Headers {
		values = append(values, value)
	}
	for _, value := range values {
		if len(value) >= minRedacted {
			text = strings.ReplaceAll(text, value, "[redacted]")
		}
	}
	return text
}

// SecretNames returns the names of the Secrets that a probe uses, without duplicates.
func SecretNames(spec v1alpha1.EndpointProbeSpec) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if spec.HTTP != nil {
		for _, header := range spec.HTTP.SecretHeaders {
			add(header.Value.Name)
		}
		if spec.HTTP.BearerToken != nil {
			add(spec.HTTP.BearerToken.Name)
		}
	}
	if spec.TLS != nil {
		if spec.TLS.CASecret != nil {
			add(spec.TLS.CASecret.Name)
		}
		add(spec.TLS.ClientSecret)
	}
	return names
}

// ConfigMapNames returns the names of the ConfigMaps that a probe uses.
func ConfigMapNames(spec v1alpha1.EndpointProbeSpec) []string {
	if spec.TLS == nil || spec.TLS.CAConfigMap == nil {
		return nil
	}
	return []string{spec.TLS.CAConfigMap.Name}
}

// Secret is the content of a Secret or a ConfigMap of a probe.
type Secret struct {
	Labels map[string]string
	Data   map[string][]byte
	// Unreadable is the reason why it could not be read. It is empty if it could be read.
	Unreadable string
}

// ReadCredentials reads the credentials of a probe from its Secrets, and the CA from
// its ConfigMap, both by name. If any value is missing or invalid, it returns only the first
// failure. Only labelled Secrets are used: otherwise a user could create an EndpointProbe to
// send any Secret of a namespace to any server.
func ReadCredentials(spec v1alpha1.EndpointProbeSpec, secrets, configMaps map[string]Secret) (*Credentials, *Failure) {
	reader := &secretReader{secrets: secrets}
	var out Credentials
	if spec.HTTP != nil {
		for _, header := range spec.HTTP.SecretHeaders {
			if out.Headers == nil {
				out.Headers = map[string]string{}
			}
			out.Headers[header.Name] = reader.readHeader(header.Value)
		}
		if spec.HTTP.BearerToken != nil {
			out.BearerToken = reader.readHeader(*spec.HTTP.BearerToken)
		}
	}
	if spec.TLS != nil && spec.TLS.CASecret != nil {
		out.CA = reader.readValue(*spec.TLS.CASecret)
	}
	if spec.TLS != nil && spec.TLS.CAConfigMap != nil {
		out.CA = reader.readConfigMap(configMaps, *spec.TLS.CAConfigMap)
	}
	if spec.TLS != nil && spec.TLS.ClientSecret != "" {
		name := spec.TLS.ClientSecret
		out.Certificate = reader.readValue(v1alpha1.SecretKey{Name: name, Key: corev1.TLSCertKey})
		out.Key = reader.readValue(v1alpha1.SecretKey{Name: name, Key: corev1.TLSPrivateKeyKey})
	}
	if reader.failure != nil {
		return nil, reader.failure
	}
	return &out, nil
}

// secretReader reads values and keeps the first failure.
type secretReader struct {
	secrets map[string]Secret
	failure *Failure
}

// recordFailure keeps the first failure, and returns an empty value.
func (r *secretReader) recordFailure(format string, args ...any) string {
	if r.failure == nil {
		r.failure = &Failure{Reason: v1alpha1.ReasonSecretUnavailable, Message: fmt.Sprintf(format, args...)}
	}
	return ""
}

// readValue returns a value of a labelled Secret.
func (r *secretReader) readValue(key v1alpha1.SecretKey) string {
	secret := r.secrets[key.Name]
	value := secret.Data[key.Key]
	switch {
	case secret.Unreadable != "":
		return r.recordFailure("%s", secret.Unreadable)
	case secret.Labels[v1alpha1.LabelProbeSecret] != "true":
		return r.recordFailure("Secret %s lacks the label %s=true, without which probes do not use it", key.Name,
			v1alpha1.LabelProbeSecret)
	case len(value) == 0:
		return r.recordFailure("Secret %s has no value for the key %s", key.Name, key.Key)
	}
	return string(value)
}

// readConfigMap returns a value of a ConfigMap. It needs no label, because probes do not send values of ConfigMaps.
func (r *secretReader) readConfigMap(all map[string]Secret, key v1alpha1.ConfigMapKey) string {
	configMap := all[key.Name]
	value := configMap.Data[key.Key]
	switch {
	case configMap.Unreadable != "":
		return r.recordFailure("%s", configMap.Unreadable)
	case len(value) == 0:
		return r.recordFailure("ConfigMap %s has no value for the key %s", key.Name, key.Key)
	}
	return string(value)
}

// readHeader returns a value for a header, without the line break
// that files often end with. The failure does not quote the value.
func (r *secretReader) readHeader(key v1alpha1.SecretKey) string {
	value := strings.TrimRight(r.readValue(key), "\r\n")
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return r.recordFailure(
			"the value of the key %s in Secret %s cannot be sent in a header: it has control characters",
			key.Key, key.Name)
	}
	return value
}
