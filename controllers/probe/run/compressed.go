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

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// contentEncoding is the header with the compression of a body.
const contentEncoding = "Content-Encoding"

// A probe accepts no compression, but some servers compress each answer. The prober of
// blackbox_exporter matches the bytes that it receives, unless the compression is
// configured before; then it expects each answer to be compressed. Therefore a probe that
// matches the text first fails because of the header, and is run again with gzip if the
// header names gzip. A header value that is no compression is accepted: some servers send
// "UTF-8", "none" or "binary" for a text.
var (
	gzipHeader = config.HeaderMatch{Header: contentEncoding, AllowMissing: true,
		Regexp: config.MustNewRegexp(`(?i)^\s*(x-)?gzip\s*$`)}
	// compressedHeader matches gzip and all other registered compressions. It is
	// evaluated after gzipHeader.
	compressedHeader = config.HeaderMatch{Header: contentEncoding, AllowMissing: true,
		Regexp: config.MustNewRegexp(`(?i)(^|[\s,])((x-)?gzip|(x-)?compress|deflate|br|dcb|zstd|dcz|exi|pack200-gzip|` +
			`aes128gcm)([\s,;]|$)`)}
)

// encoding is the compression of an answer that a probe matches.
type encoding int

const (
	// encodingNone is also used for answers that are not matched.
	encodingNone encoding = iota
	encodingGzip
	// encodingOther is a compression that cannot be read.
	encodingOther
)

// matchesBody reports whether a probe evaluates the body of an answer.
func matchesBody(p *config.HTTPProbe) bool {
	return len(p.FailIfBodyMatchesRegexp) > 0 || len(p.FailIfBodyNotMatchesRegexp) > 0 ||
		p.FailIfBodyJsonNotMatchesCEL != nil
}

// refuseCompressed returns a module that fails if the answer is compressed and its body would be
// matched. The module checks the compression before the headers of the spec, so that readEncoding
// can find the compression in the logged failure.
func refuseCompressed(module config.Module) config.Module {
	if !matchesBody(&module.HTTP) {
		return module
	}
	h := &module.HTTP
	h.FailIfHeaderMatchesRegexp = slices.Insert(slices.Clone(h.FailIfHeaderMatchesRegexp), 0, gzipHeader,
		compressedHeader)
	return module
}

// readEncoding returns the compression from a log record of the prober. The prober
// logs which header made a probe fail; the result is encodingNone if that header is
// not from refuseCompressed.
func readEncoding(r slog.Record) encoding {
	out, values := encodingNone, int64(0)
	r.Attrs(func(attr slog.Attr) bool {
		switch pattern, _ := attr.Value.Any().(config.Regexp); {
		case attr.Key == "value_count":
			values = attr.Value.Int64()
		case pattern.Regexp == gzipHeader.Regexp.Regexp:
			out = encodingGzip
		case pattern.Regexp == compressedHeader.Regexp.Regexp:
			out = encodingOther
		}
		return true
	})
	if out == encodingGzip && values != 1 { // each value of the header is a compression of the answer
		return encodingOther
	}
	return out
}

// canRepeat reports whether a request can be sent twice, because the first request
// changed nothing on the server.
func canRepeat(p *config.HTTPProbe) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead}, cmp.Or(p.Method, http.MethodGet)) && p.Body == ""
}

// newCompressedFailure returns the failure for a compressed answer that cannot be matched.
func newCompressedFailure(e encoding) *probes.Failure {
	detail := "only gzip can be read"
	if e == encodingGzip {
		detail = "it is read only of a request with the method GET and without a body, which can be sent again"
	}
	return &probes.Failure{Reason: v1alpha1.ReasonBadAnswer, Message: fmt.Sprintf("the answer is compressed, as its "+
		"header %s says, so its text cannot be matched: %s", contentEncoding, detail)}
}
