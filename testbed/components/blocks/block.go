// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"
)

// perChunk is how many samples Prometheus puts into a chunk.
const perChunk = 120

// writeBlock writes the samples from index first up to and without last. A block becomes visible when it is complete.
func writeBlock(ctx context.Context, dir string, all []series, g grid, first, last int) error {
	id, err := ulid.New(ulid.Timestamp(time.UnixMilli(g.at(first))), rand.Reader)
	if err != nil {
		return fmt.Errorf("name block: %w", err)
	}
	unfinished := filepath.Join(dir, id.String()+".tmp-for-creation")
	w := &blockWriter{meta: tsdb.BlockMeta{
		ULID: id, Version: 1, MinTime: g.at(first), MaxTime: g.at(last),
		Compaction: tsdb.BlockMetaCompaction{Level: 1, Sources: []ulid.ULID{id}},
	}}
	if err := w.open(ctx, unfinished, all); err != nil {
		return errors.Join(err, w.close())
	}
	for _, s := range all {
		if err := w.add(s, g, first, last); err != nil {
			return errors.Join(fmt.Errorf("write %s: %w", s.sorted, err), w.close())
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), w.close())
		}
	}
	if err := w.close(); err != nil {
		return fmt.Errorf("finish block: %w", err)
	}
	if err := w.describe(unfinished); err != nil {
		return err
	}
	if err := os.Rename(unfinished, filepath.Join(dir, id.String())); err != nil {
		return fmt.Errorf("finish block: %w", err)
	}
	return nil
}

type blockWriter struct {
	meta    tsdb.BlockMeta
	chunks  *chunks.Writer
	index   *index.Writer
	closers []io.Closer
	refs    storage.SeriesRef
}

func (w *blockWriter) open(ctx context.Context, dir string, all []series) (err error) {
	if w.chunks, err = chunks.NewWriter(filepath.Join(dir, "chunks")); err != nil {
		return fmt.Errorf("create chunks: %w", err)
	}
	w.closers = append(w.closers, w.chunks)
	if w.index, err = index.NewWriter(ctx, filepath.Join(dir, "index")); err != nil {
		return fmt.Errorf("create index: %w", err)
	}
	w.closers = append(w.closers, w.index)
	seen := map[string]bool{}
	for _, s := range all {
		s.sorted.Range(func(l labels.Label) { seen[l.Name], seen[l.Value] = true, true })
	}
	symbols := make([]string, 0, len(seen))
	for symbol := range seen {
		symbols = append(symbols, symbol)
	}
	slices.Sort(symbols)
	for _, symbol := range symbols {
		if err := w.index.AddSymbol(symbol); err != nil {
			return fmt.Errorf("write symbols: %w", err)
		}
	}
	return nil
}

func (w *blockWriter) close() error {
	var errs []error
	for _, c := range w.closers {
		errs = append(errs, c.Close())
	}
	w.closers = nil
	return errors.Join(errs...)
}

// add writes the part of a series that is in the block; a series without any has no place in it.
func (w *blockWriter) add(s series, g grid, first, last int) error {
	e := encoder{}
	at := 0
	for _, r := range s.Runs {
		from, to := max(at, first), min(at+r.Count, last)
		for i := from; i < to && !r.Absent; i++ {
			if err := e.append(g.at(i), r.First+r.Step*float64(i-at)); err != nil {
				return err
			}
		}
		if at += r.Count; at >= last {
			break
		}
	}
	if len(e.done) == 0 {
		return nil
	}
	if err := w.chunks.WriteChunks(e.done...); err != nil {
		return err
	}
	if err := w.index.AddSeries(w.refs, s.sorted, e.done...); err != nil {
		return err
	}
	w.refs++
	w.meta.Stats.NumSeries++
	w.meta.Stats.NumChunks += uint64(len(e.done))
	w.meta.Stats.NumSamples += e.samples
	w.meta.Stats.NumFloatSamples += e.samples
	return nil
}

// encoder makes chunks of samples.
type encoder struct {
	done     []chunks.Meta
	appender chunkenc.Appender
	samples  uint64
}

func (e *encoder) append(at int64, value float64) error {
	if e.samples%perChunk == 0 {
		chunk := chunkenc.NewXORChunk()
		appender, err := chunk.Appender()
		if err != nil {
			return err
		}
		e.appender = appender
		e.done = append(e.done, chunks.Meta{Chunk: chunk, MinTime: at})
	}
	e.appender.Append(0, at, value)
	e.done[len(e.done)-1].MaxTime = at
	e.samples++
	return nil
}

// describe writes the files that make a block of it.
func (w *blockWriter) describe(dir string) error {
	text, err := json.MarshalIndent(w.meta, "", "\t")
	if err != nil {
		return fmt.Errorf("describe block: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), text, 0o600); err != nil {
		return fmt.Errorf("describe block: %w", err)
	}
	if _, err := tombstones.WriteFile(slog.New(slog.DiscardHandler), dir, tombstones.NewMemTombstones()); err != nil {
		return fmt.Errorf("describe block: %w", err)
	}
	return nil
}
