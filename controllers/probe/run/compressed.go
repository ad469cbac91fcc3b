// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/prometheus/blackbox_exporter/config"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

// contentEncoding is the header that says how a body is compressed.
const contentEncoding = "Content-Encoding"

// A probe accepts no compression, but some servers compress each answer. The prober matches the bytes that it is sent,
// unless it is told the compression before: then it takes each answer for compressed. So a probe that matches the text
// fails by the header at first, and is run again with gzip if that is what the header says. What is no compression
// passes: some servers say "UTF-8", "none" or "binary" of a text.
var (
	gzipped = config.HeaderMatch{Header: contentEncoding, AllowMissing: true,
		Regexp: config.MustNewRegexp(`(?i)^\s*(x-)?gzip\s*$`)}
	// compressed finds these and any other of the registered compressions, and is asked after gzipped.
	compressed = config.HeaderMatch{Header: contentEncoding, AllowMissing: true,
		Regexp: config.MustNewRegexp(`(?i)(^|[\s,])((x-)?gzip|(x-)?compress|deflate|br|dcb|zstd|dcz|exi|pack200-gzip|` +
			`aes128gcm)([\s,;]|$)`)}
)

// encoding is how an answer that a probe matches is compressed.
type encoding int

const (
	// encodingNone is also that of answers that are not matched.
	encodingNone encoding = iota
	encodingGzip
	// encodingOther cannot be read.
	encodingOther
)

// matchesBody tells whether a probe reads the text of an answer.
func matchesBody(p *config.HTTPProbe) bool {
	return len(p.FailIfBodyMatchesRegexp) > 0 || len(p.FailIfBodyNotMatchesRegexp) > 0 ||
		p.FailIfBodyJsonNotMatchesCEL != nil
}

// refuseCompressed returns a module that fails where an answer is compressed that it would match.
func refuseCompressed(module config.Module) config.Module {
	if !matchesBody(&module.HTTP) {
		return module
	}
	h := &module.HTTP
	h.FailIfHeaderMatchesRegexp = slices.Insert(slices.Clone(h.FailIfHeaderMatchesRegexp), 0, gzipped, compressed)
	return module
}

// encodingOf reads from what the prober logs of a header that it failed by whether that is one of refuseCompressed.
func encodingOf(r slog.Record) encoding {
	out, values := encodingNone, int64(0)
	r.Attrs(func(attr slog.Attr) bool {
		switch by, _ := attr.Value.Any().(config.Regexp); {
		case attr.Key == "value_count":
			values = attr.Value.Int64()
		case by.Regexp == gzipped.Regexp.Regexp:
			out = encodingGzip
		case by.Regexp == compressed.Regexp.Regexp:
			out = encodingOther
		}
		return true
	})
	if out == encodingGzip && values != 1 {
		return encodingOther // it is compressed more than once
	}
	return out
}

// canRepeat tells whether a request may be sent twice.
func canRepeat(p *config.HTTPProbe) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead}, cmp.Or(p.Method, http.MethodGet)) && p.Body == ""
}

// compressedFailure explains an answer that cannot be matched.
func compressedFailure(e encoding) *plan.Failure {
	detail := "only gzip can be read"
	if e == encodingGzip {
		detail = "it is read only of a request with the method GET and without a body, which can be sent again"
	}
	return &plan.Failure{Reason: v1alpha1.ReasonBadAnswer, Message: fmt.Sprintf("the answer is compressed, as its "+
		"header %s says, so its text cannot be matched: %s", contentEncoding, detail)}
}
