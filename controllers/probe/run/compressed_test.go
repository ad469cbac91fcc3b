// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// compressing starts a server that compresses each answer, even if the client does not accept
// compression. The path is the encoding in the header. The content is always gzip.
func compressing(t *testing.T, text string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encoding := strings.TrimPrefix(r.URL.Path, "/")
		w.Header().Set("Content-Encoding", encoding)
		if slices.Contains([]string{"identity", "utf-8", "none", "binary"}, strings.ToLower(encoding)) {
			_, _ = io.WriteString(w, text)
			return
		}
		var body bytes.Buffer
		writer := gzip.NewWriter(&body)
		_, _ = io.WriteString(writer, text)
		_ = writer.Close()
		_, _ = w.Write(body.Bytes())
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestCompressedAnswers matches answers that are compressed although the probe accepts no compression.
func TestCompressedAnswers(t *testing.T) {
	url := compressing(t, `{"status":"ok","text":"Welcome"}`)
	for name, tc := range map[string]struct {
		encoding, method string
		probe            v1alpha1.HTTPProbe
		want, message    string
	}{
		"matches": {"gzip", "", v1alpha1.HTTPProbe{Matches: []string{"Welcome"}}, "", ""},
		"matches, and is wrong": {"gzip", "", v1alpha1.HTTPProbe{Matches: []string{"Goodbye"}},
			v1alpha1.ReasonBadAnswer, "does not match"},
		"does not match, and is wrong": {"gzip", "", v1alpha1.HTTPProbe{NotMatches: []string{"Welcome"}},
			v1alpha1.ReasonBadAnswer, "does not match"},
		"does not match": {"gzip", "", v1alpha1.HTTPProbe{NotMatches: []string{"error"}}, "", ""},
		"json":           {"X-GZIP", "", v1alpha1.HTTPProbe{JSON: `body.status == "ok"`}, "", ""},
		"accepted": {"gzip", "", v1alpha1.HTTPProbe{Matches: []string{"Welcome"},
			Headers: map[string]string{"Accept-Encoding": "gzip"}}, "", ""},
		"identity": {"identity", "", v1alpha1.HTTPProbe{Matches: []string{"Welcome"}}, "", ""},
		"utf-8":    {"UTF-8", "", v1alpha1.HTTPProbe{Matches: []string{"Welcome"}}, "", ""},
		"utf-8, and is wrong": {"utf-8", "", v1alpha1.HTTPProbe{NotMatches: []string{"Welcome"}},
			v1alpha1.ReasonBadAnswer, "does not match"},
		"none":   {"none", "", v1alpha1.HTTPProbe{JSON: `body.status == "ok"`}, "", ""},
		"binary": {"binary", "", v1alpha1.HTTPProbe{Matches: []string{"Welcome"}}, "", ""},
		"another compression": {"br", "", v1alpha1.HTTPProbe{NotMatches: []string{"error"}}, v1alpha1.ReasonBadAnswer,
			"compressed"},
		"two compressions": {"gzip, br", "", v1alpha1.HTTPProbe{NotMatches: []string{"error"}},
			v1alpha1.ReasonBadAnswer, "compressed"},
		"a request that is not repeated": {"gzip", http.MethodPost, v1alpha1.HTTPProbe{NotMatches: []string{"error"}},
			v1alpha1.ReasonBadAnswer, "compressed"},
		"nothing of the text": {"br", "", v1alpha1.HTTPProbe{}, "", ""},
		"a header": {"gzip", "", v1alpha1.HTTPProbe{Matches: []string{"Welcome"},
			HeaderMatches: []v1alpha1.HeaderMatch{{Name: "Content-Encoding", Regex: "gzip"}}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.probe.Method = tc.method
			out := runProbe(t, nil, httpSpec(url+"/"+tc.encoding, tc.probe), probes.Target{})
			checkResult(t, out, tc.want, tc.message)
		})
	}
}

// TestCompressedAnswersAreBounded probes a server that sends a large text in few bytes. The
// matched text is limited, and its cost is charged.
func TestCompressedAnswersAreBounded(t *testing.T) {
	spec := func(size int) v1alpha1.EndpointProbeSpec {
		return httpSpec(compressing(t, strings.Repeat("a", size))+"/gzip",
			v1alpha1.HTTPProbe{NotMatches: []string{"[b-z]+x"}})
	}
	checkResult(t, runProbe(t, nil, spec(8<<20), probes.Target{}), v1alpha1.ReasonAnswerTooLarge, "KiB")
	out := runProbe(t, nil, spec(100<<10), probes.Target{})
	checkResult(t, out, "", "")
	if least := 100 << 10; out.steps < least {
		t.Errorf("%d steps, want at least %d", out.steps, least)
	}
}
