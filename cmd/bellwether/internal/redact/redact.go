// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact removes secrets from objects and texts that leave the house. It is pure. It removes too much rather
// than too little: what looks like a credential is removed, whether it is one or not.
package redact

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Removed stands for what was removed.
const Removed = "[redacted]"

// Object returns a copy of an object, as decoded from JSON, without secrets. Left out are the fields that the API
// server keeps for itself and the last applied configuration. Removed are the data of Secrets and ConfigMaps, also of
// those that are embedded in strings, the values of environment variables, values whose names are those of credentials,
// and what Text removes of each string.
func Object(object map[string]any) map[string]any {
	out, _ := value("", object).(map[string]any)
	return out
}

// leftOut are keys of objects that are never part of a copy.
var leftOut = map[string]bool{"managedFields": true, "kubectl.kubernetes.io/last-applied-configuration": true}

// secretKey matches the names of fields, annotations and headers whose values are credentials. A name of a Secret, such
// as in secretName, is none.
var secretKey = regexp.MustCompile(`(?i)(pass(word|wd|phrase)|token|secret|credentials?|private[-_.]?key|` +
	`api[-_.]?key|routing[-_.]?key|access[-_.]?key|secret[-_.]?key|integration[-_.]?key|key-data|` +
	`authorization|cookie|` +
	`dockerconfigjson|dockercfg|kubeconfig)$`)

func value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return fields(key, v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = value(key, item)
		}
		return out
	case string:
		if secretKey.MatchString(key) && v != "" {
			return Removed
		}
		return embedded(v)
	default:
		return v
	}
}

func fields(key string, m map[string]any) map[string]any {
	holdsData := m["kind"] == "Secret" || m["kind"] == "ConfigMap"
	name, _ := m["name"].(string)
	out := make(map[string]any, len(m))
	for k, v := range m {
		_, isText := v.(string)
		switch {
		case leftOut[k]:
		case holdsData && (k == "data" || k == "stringData" || k == "binaryData"):
			out[k] = Removed
		case k == "value" && isText && (key == "env" || secretKey.MatchString(name)):
			out[k] = Removed
		default:
			out[k] = value(k, v)
		}
	}
	return out
}

// embedded is a string that may itself be an object, as in annotations and in the steps of InstallPlans.
func embedded(text string) string {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		var v any
		if json.Unmarshal([]byte(trimmed), &v) == nil {
			if again, err := json.Marshal(value("", v)); err == nil {
				return string(again)
			}
		}
	}
	return Text(text)
}

// patterns match what is a credential wherever it is, and what replaces it.
var patterns = []struct {
	matches *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`),
		Removed},
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(\.[A-Za-z0-9_-]*)?`), Removed}, // a JSON Web Token
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`), "$1 " + Removed},
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s@"'\\]+@`), "${1}" + Removed + "@"},
	{regexp.MustCompile(`(gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|AKIA|ASIA)[A-Za-z0-9_-]{10,}`), Removed},
	{regexp.MustCompile(`(hooks\.slack\.com/(services|workflows)/)[^\s"'\\]+`), "${1}" + Removed},
	// NAME=VALUE, NAME: VALUE and "NAME":"VALUE", also where the quotes are escaped.
	{regexp.MustCompile(`(?i)((?:pass(?:word|wd|phrase)|token|api[-_.]?key|access[-_.]?key|secret[-_.]?key|` +
		`private[-_.]?key|routing[-_.]?key|integration[-_.]?key|client[-_.]?secret|key-data|authorization|cookie)` +
		`\\*["']?\s*[:=]\s*\\*["']?)[^\s"',;&}\\]+`), "${1}" + Removed},
}

// Text returns a text, such as a log, without what looks like a credential: private keys, JSON Web Tokens, headers for
// authorization, user and password in URLs, the usual tokens of well-known services, values that are given a name such
// as password or token, Secrets as JSON or YAML, and all of that encoded with base64.
func Text(text string) string {
	text = withoutSecrets(text)
	for _, p := range patterns {
		text = p.matches.ReplaceAllString(text, p.by)
	}
	return encoded.ReplaceAllStringFunc(text, func(blob string) string {
		if hidesSecret(blob) {
			return Removed
		}
		return blob
	})
}

// encoded matches what may be base64.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{20,}={0,2}`)

// hidesSecret tells whether a text is the base64 of one with a credential.
func hidesSecret(blob string) bool {
	blob = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(blob, "="))
	data, err := base64.RawStdEncoding.DecodeString(blob)
	if err != nil || !utf8.Valid(data) {
		return false
	}
	decoded := string(data)
	for _, p := range patterns {
		if p.matches.MatchString(decoded) {
			return true
		}
	}
	return strings.Contains(decoded, `"auths"`)
}

var (
	secretInJSON = regexp.MustCompile(`\\*"kind\\*"\s*:\s*\\*"Secret\\*"`)
	secretInYAML = regexp.MustCompile(`^[\s-]*kind:\s*["']?Secret\b`)
	dataInYAML   = regexp.MustCompile(`^([\s-]*)(data|stringData):`)
)

// withoutSecrets removes lines with a Secret as JSON, and the data of Secrets as YAML: the data of every object of a
// text that has one, since it may come before the kind.
func withoutSecrets(text string) string {
	if !strings.Contains(text, "Secret") {
		return text
	}
	lines := strings.Split(text, "\n")
	yaml := false
	for i, line := range lines {
		if secretInJSON.MatchString(line) {
			lines[i] = Removed
		}
		yaml = yaml || secretInYAML.MatchString(line)
	}
	if !yaml {
		return strings.Join(lines, "\n")
	}
	kept, margin := lines[:0:0], -1
	for _, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if margin >= 0 && (indent > margin || strings.TrimSpace(line) == "") {
			continue
		}
		margin = -1
		if m := dataInYAML.FindStringSubmatch(line); m != nil {
			margin = len(m[1])
			line = m[0] + " " + Removed
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}
