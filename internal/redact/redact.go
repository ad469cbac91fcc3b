// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact removes secrets from objects and texts that are given to other people. It is pure. It removes too
// much rather than too little: a text that looks like a credential is always removed.
package redact

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Removed replaces removed values.
const Removed = "[redacted]"

// Object returns a copy of an object, as decoded from JSON, without secrets. The copy does not have the fields that
// the API server manages and the last applied configuration. These values are replaced: the data of Secrets and
// ConfigMaps, also if they are embedded in strings, the values of environment variables, values with the names of
// credentials, and the secrets that Text removes from strings.
func Object(object map[string]any) map[string]any {
	out, _ := redactValue("", object).(map[string]any)
	return out
}

// omittedKeys are keys of objects that are not copied.
var omittedKeys = map[string]bool{"managedFields": true, "kubectl.kubernetes.io/last-applied-configuration": true}

// secretKey matches the names of fields, annotations and headers whose values are credentials. The name of a Secret,
// such as in secretName, is not a credential.
var secretKey = regexp.MustCompile(`(?i)(pass(word|wd|phrase)|token|secret|credentials?|private[-_.]?key|` +
	`api[-_.]?key|routing[-_.]?key|access[-_.]?key|secret[-_.]?key|integration[-_.]?key|key-data|` +
	`authorization|cookie|` +
	`dockerconfigjson|dockercfg|kubeconfig)$`)

// redactValue returns a copy of the value of a key without secrets. The key decides whether a string is a credential.
// The items of a list have the key of the list.
func redactValue(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return redactFields(key, v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = redactValue(key, item)
		}
		return out
	case string:
		if secretKey.MatchString(key) && v != "" {
			return Removed
		}
		return redactString(v)
	default:
		return v
	}
}

// redactFields returns a copy of the object under a key without secrets. The field value is a secret in a list of
// environment variables (key env), and in an object whose field name has the name of a credential.
func redactFields(key string, m map[string]any) map[string]any {
	holdsData := m["kind"] == "Secret" || m["kind"] == "ConfigMap"
	name, _ := m["name"].(string)
	out := make(map[string]any, len(m))
	for k, v := range m {
		_, isText := v.(string)
		switch {
		case omittedKeys[k]: // not copied
		case holdsData && (k == "data" || k == "stringData" || k == "binaryData"):
			out[k] = Removed
		case k == "value" && isText && (key == "env" || secretKey.MatchString(name)):
			out[k] = Removed
		default:
			out[k] = redactValue(k, v)
		}
	}
	return out
}

// redactString removes secrets from a string. The string can itself be a JSON object, as in annotations and in the
// steps of InstallPlans.
func redactString(text string) string {
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		var v any
		if json.Unmarshal([]byte(trimmed), &v) == nil {
			if redacted, err := json.Marshal(redactValue("", v)); err == nil {
				return string(redacted)
			}
		}
	}
	return Text(text)
}

// patterns match credentials in any text, with their replacements.
var patterns = []struct {
	pattern     *regexp.Regexp
	replacement string
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

// Text returns a text, such as a log, without texts that look like credentials: private keys, JSON Web Tokens, headers
// for authorization, user and password in URLs, the usual tokens of well-known services, values with a name such as
// password or token, Secrets as JSON or YAML, and all of these in base64.
func Text(text string) string {
	text = removeSecrets(text)
	for _, p := range patterns {
		text = p.pattern.ReplaceAllString(text, p.replacement)
	}
	return base64Pattern.ReplaceAllStringFunc(text, func(blob string) string {
		if hasEncodedSecret(blob) {
			return Removed
		}
		return blob
	})
}

// base64Pattern matches texts that might be base64.
var base64Pattern = regexp.MustCompile(`[A-Za-z0-9+/_-]{20,}={0,2}`)

// hasEncodedSecret reports whether a text is base64 of a text with a credential.
func hasEncodedSecret(blob string) bool {
	blob = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(blob, "="))
	data, err := base64.RawStdEncoding.DecodeString(blob)
	if err != nil || !utf8.Valid(data) {
		return false
	}
	decoded := string(data)
	for _, p := range patterns {
		if p.pattern.MatchString(decoded) {
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

// removeSecrets replaces lines with a Secret as JSON. If the text has a Secret as YAML, it removes the data of every
// object in the text, because the data can come before the kind: the fields data and stringData, with the indented
// lines below.
func removeSecrets(text string) string {
	if !strings.Contains(text, "Secret") {
		return text
	}
	lines := strings.Split(text, "\n")
	hasYAMLSecret := false
	for i, line := range lines {
		if secretInJSON.MatchString(line) {
			lines[i] = Removed
		}
		hasYAMLSecret = hasYAMLSecret || secretInYAML.MatchString(line)
	}
	if !hasYAMLSecret {
		return strings.Join(lines, "\n")
	}
	remaining, margin := lines[:0:0], -1 // margin is the indent of the field that is being removed; -1 if there is none
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
		remaining = append(remaining, line)
	}
	return strings.Join(remaining, "\n")
}
