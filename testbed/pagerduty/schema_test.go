// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pagerduty_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// mutation changes a valid event. The payload is that of the event, so that a case is one line.
type mutation func(event, payload object)

// schemaCase is one rule: an event that is changed by it is accepted, or refused for these reasons.
type schemaCase struct {
	change mutation
	want   []string
}

func top(name string, value any) mutation     { return func(event, _ object) { event[name] = value } }
func payload(name string, value any) mutation { return func(_, p object) { p[name] = value } }
func withoutTop(names ...string) mutation {
	return func(event, _ object) {
		for _, name := range names {
			delete(event, name)
		}
	}
}
func withoutPayload(name string) mutation { return func(_, p object) { delete(p, name) } }

const severities = "'payload.severity' is invalid " +
	"(must be one of the following: 'critical', 'warning', 'error' or 'info')"

// commonRules are those of both kinds of events.
var commonRules = map[string]schemaCase{
	"all fields":                 {change: func(object, object) {}},
	"routing key missing":        {withoutTop("routing_key"), []string{"'routing_key' is missing or blank"}},
	"routing key blank":          {top("routing_key", " "), []string{"'routing_key' is missing or blank"}},
	"routing key not a string":   {top("routing_key", 1), []string{"'routing_key' must be a string"}},
	"routing key short":          {top("routing_key", "abc"), []string{"Length of 'routing_key' is incorrect (should be 32 characters)"}},
	"routing key with dashes":    {top("routing_key", strings.Repeat("a-", 16)), []string{"'routing_key' cannot contain non-alphanumeric characters."}},
	"unknown field":              {top("colour", "red"), []string{"'colour' is not a known field"}},
	"field in another case":      {top("Links", []any{}), []string{"'Links' is not a known field"}},
	"payload not an object":      {top("payload", "x"), []string{"'payload' must be an object"}},
	"payload null":               {top("payload", nil), []string{"'payload' must be an object"}},
	"unknown field in payload":   {payload("colour", "red"), []string{"'payload.colour' is not a known field"}},
	"summary missing":            {withoutPayload("summary"), []string{"'payload.summary' is missing or blank"}},
	"summary blank":              {payload("summary", "\n"), []string{"'payload.summary' is missing or blank"}},
	"summary not a string":       {payload("summary", 5), []string{"'payload.summary' must be a string"}},
	"summary of 1 character":     {change: payload("summary", "x")},
	"summary of 1024 characters": {change: payload("summary", strings.Repeat("é", 1024))},
	"summary of 1025 characters": {payload("summary", strings.Repeat("x", 1025)), []string{"'payload.summary' is too long (maximum is 1024 characters)"}},
	"source not a string":        {payload("source", 1), []string{"'payload.source' must be a string"}},
	"timestamp missing":          {change: withoutPayload("timestamp")},
	"timestamp with colon":       {change: payload("timestamp", "2026-03-01T12:00:00.123456789+01:00")},
	"timestamp without colon":    {change: payload("timestamp", "2026-03-01T12:00:00-0730")},
	"timestamp without zone":     {payload("timestamp", "2026-03-01T12:00:00"), []string{"'payload.timestamp' is not a time in ISO 8601 with a time zone"}},
	"timestamp in seconds":       {payload("timestamp", 1700000000), []string{"'payload.timestamp' must be a string"}},
	"timestamp blank":            {payload("timestamp", ""), []string{"'payload.timestamp' is not a time in ISO 8601 with a time zone"}},
	"details missing":            {change: withoutPayload("custom_details")},
	"details nested":             {change: payload("custom_details", object{"a": []any{object{"b": nil}}})},
	"details a string":           {payload("custom_details", "x"), []string{"'payload.custom_details' must be an object"}},
	"details a list":             {payload("custom_details", []any{}), []string{"'payload.custom_details' must be an object"}},
	"links missing":              {change: withoutTop("links")},
	"links empty":                {change: top("links", []any{})},
	"links an object":            {top("links", object{}), []string{"'links' must be an array"}},
	"link a string":              {top("links", []any{"x"}), []string{"'links[0]' must be an object"}},
	"link without text":          {change: top("links", []any{object{"href": "http://example.com"}})},
	"link without href":          {top("links", []any{object{"text": "x"}}), []string{"'links[0].href' is missing or blank"}},
	"link to a script":           {top("links", []any{object{"href": "javascript:alert(1)"}}), []string{"'links[0].href' must be a URL (http or https)"}},
	"link to a path":             {top("links", []any{object{"href": "/runbook"}}), []string{"'links[0].href' must be a URL (http or https)"}},
	"link without a host":        {top("links", []any{object{"href": "https:///runbook"}}), []string{"'links[0].href' must be a URL (http or https)"}},
	"link with an unknown field": {top("links", []any{object{"href": "http://example.com", "alt": "x"}}), []string{"'links[0].alt' is not a known field"}},
	"second link wrong":          {top("links", []any{object{"href": "http://example.com"}, object{"href": 1}}), []string{"'links[1].href' must be a string"}},
	"several problems": {func(event, p object) { event["routing_key"], p["summary"] = "-", "" }, []string{
		"Length of 'routing_key' is incorrect (should be 32 characters)",
		"'routing_key' cannot contain non-alphanumeric characters.", "'payload.summary' is missing or blank",
	}},
}

var alertRules = map[string]schemaCase{
	"acknowledge":                 {change: top("event_action", "acknowledge")},
	"resolve":                     {change: top("event_action", "resolve")},
	"action missing":              {withoutTop("event_action"), []string{"'event_action' is missing or blank"}},
	"action unknown":              {top("event_action", "reopen"), []string{"'event_action' is invalid (must be one of the following: 'trigger', 'acknowledge' or 'resolve')"}},
	"action in capitals":          {top("event_action", "Trigger"), []string{"'event_action' is invalid (must be one of the following: 'trigger', 'acknowledge' or 'resolve')"}},
	"dedup key missing":           {change: withoutTop("dedup_key")},
	"dedup key not a string":      {top("dedup_key", 1), []string{"'dedup_key' must be a string"}},
	"dedup key of 255 characters": {change: top("dedup_key", strings.Repeat("é", 255))},
	"dedup key of 256 characters": {top("dedup_key", strings.Repeat("x", 256)), []string{"'dedup_key' is too long (maximum is 255 characters)"}},
	"trigger without payload":     {withoutTop("payload"), []string{"'payload' is missing or blank"}},
	"source missing":              {withoutPayload("source"), []string{"'payload.source' is missing or blank"}},
	"severity missing":            {withoutPayload("severity"), []string{"'payload.severity' is missing or blank"}},
	"severity blank":              {payload("severity", ""), []string{"'payload.severity' is missing or blank"}},
	"severity critical":           {change: payload("severity", "critical")},
	"severity warning":            {change: payload("severity", "warning")},
	"severity info":               {change: payload("severity", "info")},
	"severity page":               {payload("severity", "page"), []string{severities}},
	"severity in capitals":        {payload("severity", "Critical"), []string{severities}},
	"severity a number":           {payload("severity", 1), []string{severities}},
	"component not a string":      {payload("component", 1), []string{"'payload.component' must be a string"}},
	"group not a string":          {payload("group", []any{}), []string{"'payload.group' must be a string"}},
	"class not a string":          {payload("class", object{}), []string{"'payload.class' must be a string"}},
	"client not a string":         {top("client", 1), []string{"'client' must be a string"}},
	"client URL blank":            {change: top("client_url", "")},
	"client URL not a URL":        {top("client_url", "alertmanager"), []string{"'client_url' must be a URL (http or https)"}},
	"client URL not a string":     {top("client_url", 1), []string{"'client_url' must be a string"}},
	"images not a list":           {top("images", "x"), []string{"'images' must be an array"}},
	"image without source":        {top("images", []any{object{"alt": "x"}}), []string{"'images[0].src' is missing or blank"}},
	"image without TLS":           {top("images", []any{object{"src": "http://example.com/a.png"}}), []string{"'images[0].src' must be a URL (https)"}},
	"image with a wrong link":     {top("images", []any{object{"src": "https://example.com/a.png", "href": "x"}}), []string{"'images[0].href' must be a URL (http or https)"}},
	"image with unknown field":    {top("images", []any{object{"src": "https://example.com/a.png", "text": "x"}}), []string{"'images[0].text' is not a known field"}},
	"acknowledge without key": {func(event, _ object) {
		event["event_action"] = "acknowledge"
		delete(event, "dedup_key")
	}, []string{"'dedup_key' is missing or blank"}},
	"resolve with a blank key": {func(event, _ object) {
		event["event_action"], event["dedup_key"] = "resolve", ""
	}, []string{"'dedup_key' is missing or blank"}},
	"resolve without payload": {change: func(event, _ object) {
		event["event_action"] = "resolve"
		delete(event, "payload")
	}},
	"resolve with half a payload": {func(event, p object) {
		event["event_action"] = "resolve"
		delete(p, "severity")
	}, []string{"'payload.severity' is missing or blank"}},
}

var changeRules = map[string]schemaCase{
	"payload missing":       {withoutTop("payload"), []string{"'payload' is missing or blank"}},
	"source missing":        {change: withoutPayload("source")},
	"severity":              {payload("severity", "info"), []string{"'payload.severity' is not a known field"}},
	"action":                {top("event_action", "trigger"), []string{"'event_action' is not a known field"}},
	"dedup key":             {top("dedup_key", "x"), []string{"'dedup_key' is not a known field"}},
	"images":                {top("images", []any{}), []string{"'images' is not a known field"}},
	"client of alerts only": {top("client", "x"), []string{"'client' is not a known field"}},
}

// TestSchema sends one event for every rule, and finds each refusal in the ledger.
func TestSchema(t *testing.T) {
	s := start(t, nil)
	key := keyOf(t, s, "payments")
	for kind, rules := range map[string][]map[string]schemaCase{
		pagerduty.EnqueuePath: {commonRules, alertRules}, pagerduty.ChangeEnqueuePath: {commonRules, changeRules},
	} {
		for _, table := range rules {
			for name, c := range table {
				t.Run(kind+" "+name, func(t *testing.T) {
					event := alert(key, "trigger", "web")
					if kind == pagerduty.ChangeEnqueuePath {
						event = change(key, "wave 1 begins")
					}
					c.change(event, event["payload"].(object))
					before := len(s.Ledger().Anomalies)
					got := post(t, s, kind, event)
					if len(c.want) == 0 {
						if got.Code != http.StatusAccepted || got.Status != "success" {
							t.Errorf("answer is %d %s, want it accepted", got.Code, got.Text)
						}
						return
					}
					if got.Code != http.StatusBadRequest || got.Status != "invalid event" ||
						got.Message != "Event object is invalid" {
						t.Errorf("answer is %d %s, want an invalid event", got.Code, got.Text)
					}
					if diff := cmp.Diff(c.want, got.Errors); diff != "" {
						t.Errorf("errors (-want +got):\n%s", diff)
					}
					anomalies := s.Ledger().Anomalies[before:]
					if len(anomalies) != 1 || !cmp.Equal(anomalies[0].Reasons, c.want) {
						t.Errorf("anomalies are %v, want one for these reasons", anomalies)
					}
				})
			}
		}
	}
}

// TestEnvelope is of everything around an event.
func TestEnvelope(t *testing.T) {
	s := start(t, nil)
	key := keyOf(t, s, "payments")
	encode := func(event object) []byte {
		body, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	valid := encode(alert(key, "trigger", "web"))
	// padded returns a valid event of exactly that many bytes.
	padded := func(size int) []byte {
		event := alert(key, "trigger", "large")
		details := event["payload"].(object)["custom_details"].(object)
		details["text"] = ""
		details["text"] = strings.Repeat("x", size-len(encode(event)))
		return encode(event)
	}
	const media = "application/json"
	cases := map[string]struct {
		method, path, media string
		body                []byte
		want                int
		reason              string
	}{
		"valid":                           {"POST", pagerduty.EnqueuePath, media, valid, 202, ""},
		"with charset":                    {"POST", pagerduty.EnqueuePath, media + "; charset=utf-8", valid, 202, ""},
		"of 512 KB":                       {"POST", pagerduty.EnqueuePath, media, padded(512_000), 202, ""},
		"larger than 512 KB":              {"POST", pagerduty.EnqueuePath, media, padded(512_001), 413, "event is larger than 512 KB"},
		"large change event":              {"POST", pagerduty.ChangeEnqueuePath, media, bytes.Repeat([]byte(" "), 512_001), 413, "event is larger than 512 KB"},
		"GET":                             {"GET", pagerduty.EnqueuePath, media, nil, 405, "method must be POST"},
		"PUT":                             {"PUT", pagerduty.ChangeEnqueuePath, media, valid, 405, "method must be POST"},
		"form":                            {"POST", pagerduty.EnqueuePath, "application/x-www-form-urlencoded", valid, 415, "Content-Type must be application/json"},
		"no type":                         {"POST", pagerduty.EnqueuePath, "", valid, 415, "Content-Type must be application/json"},
		"another path":                    {"POST", "/v2/enqueue/", media, valid, 404, "no such path"},
		"Events API v1":                   {"POST", "/generic/2010-04-15/create_event.json", media, valid, 404, "no such path"},
		"empty":                           {"POST", pagerduty.EnqueuePath, media, nil, 400, "JSON parse error"},
		"not JSON":                        {"POST", pagerduty.EnqueuePath, media, []byte("routing_key=x"), 400, "JSON parse error"},
		"a list":                          {"POST", pagerduty.EnqueuePath, media, []byte("[]"), 400, "JSON parse error"},
		"null":                            {"POST", pagerduty.EnqueuePath, media, []byte("null"), 400, "JSON parse error"},
		"two events":                      {"POST", pagerduty.EnqueuePath, media, append(bytes.Clone(valid), valid...), 400, "JSON parse error"},
		"unknown routing key":             {"POST", pagerduty.EnqueuePath, media, encode(alert(strings.Repeat("0", 32), "trigger", "web")), 400, "Invalid routing key"},
		"unknown routing key of a change": {"POST", pagerduty.ChangeEnqueuePath, media, encode(change(strings.Repeat("0", 32), "x")), 400, "Invalid routing key"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := len(s.Ledger().Anomalies)
			got := send(t, c.method, s.URL()+c.path, c.media, c.body)
			if got.Code != c.want || !strings.Contains(got.Text, c.reason) {
				t.Errorf("answer is %d %s, want %d because of %q", got.Code, got.Text, c.want, c.reason)
			}
			if c.want == http.StatusMethodNotAllowed && got.Header.Get("Allow") != http.MethodPost {
				t.Errorf("Allow is %q, want POST", got.Header.Get("Allow"))
			}
			anomalies := s.Ledger().Anomalies[before:]
			switch {
			case c.reason == "":
				if len(anomalies) > 0 {
					t.Errorf("anomalies are %v, want none", anomalies)
				}
			case len(anomalies) != 1 || anomalies[0].Status != c.want ||
				!cmp.Equal(anomalies[0].Reasons, []string{c.reason}):
				t.Errorf("anomalies are %v, want status %d because of %q", anomalies, c.want, c.reason)
			}
		})
	}
}
