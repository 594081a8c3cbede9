package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/sluice-rl/sluice/schemas/codec"
)

// formatKey is the metadata that marks a Parquet file as an archive.
const formatKey = "sluice.archive.format"

// A row group has so many rows, or somewhat more than so many bytes: whoever reads or
// writes one holds it in memory, and compression wants many.
const (
	groupRows  = 1024
	groupBytes = 16 << 20
)

// row is one row of Parquet.
type row struct {
	Topic     string      `parquet:"topic,dict"`
	Partition int32       `parquet:"partition"`
	Offset    int64       `parquet:"offset,delta"`
	Time      int64       `parquet:"time,timestamp(millisecond),delta"`
	Type      string      `parquet:"type,dict"`
	Key       []byte      `parquet:"key"`
	Headers   []rowHeader `parquet:"headers,list"`
	Value     []byte      `parquet:"value"`

	// For other tools.
	RunID       string `parquet:"run_id,dict"`
	Incarnation uint32 `parquet:"incarnation"`
	Step        uint64 `parquet:"step"`
	Slot        uint32 `parquet:"slot"`
	SampleIndex *int32 `parquet:"sample_index,optional"`
	Copy        uint64 `parquet:"copy"`
	QuestionID  string `parquet:"question_id"`
	DataSource  string `parquet:"data_source,dict"`
}

type rowHeader struct {
	Key   string `parquet:"key,dict"`
	Value []byte `parquet:"value"`
}

func rowOf(r Record) row {
	f := r.Facts()
	out := row{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time.UnixMilli(), Type: r.Type(), Key: r.Key, Value: r.Value,
		RunID: f.GetGroup().GetRunId(), Incarnation: f.GetGroup().GetIncarnation(), Step: f.GetGroup().GetStep(), Slot: f.GetGroup().GetSlot(),
		Copy: f.GetCopy(), QuestionID: f.GetQuestionId(), DataSource: f.GetDataSource(),
	}
	if f.Origin != nil && f.SampleIndex != nil {
		index := int32(f.GetSampleIndex())
		out.SampleIndex = &index
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, rowHeader{h.Key, h.Value})
	}
	return out
}

// headed is a record without key and value.
func (w *row) headed() Record {
	r := Record{Topic: w.Topic, Partition: w.Partition, Offset: w.Offset, Time: time.UnixMilli(w.Time).UTC()}
	for _, h := range w.Headers {
		r.Headers = append(r.Headers, codec.Header{Key: h.Key, Value: h.Value})
	}
	return r
}

// filled copies what it takes: the reader uses its buffers again.
func (w *row) filled(r Record) Record {
	r.Key, r.Value = bytes.Clone(w.Key), bytes.Clone(w.Value)
	for i, h := range r.Headers {
		r.Headers[i].Value = bytes.Clone(h.Value)
	}
	return r
}

// parquetWriter writes one file of Parquet. Row groups are encoded on other goroutines,
// and written in their order: the bytes depend on the records alone.
type parquetWriter struct {
	w      *parquet.GenericWriter[row]
	schema *parquet.Schema
	// rows are the next row group, of so many bytes.
	rows  []row
	bytes int
	// under is what is being encoded, the oldest first.
	under []chan encoded
}

type encoded struct {
	group *parquet.ConcurrentRowGroupWriter
	err   error
}

func newParquetWriter(w io.Writer) *parquetWriter {
	return &parquetWriter{
		w: parquet.NewGenericWriter[row](w, parquet.KeyValueMetadata(formatKey, strconv.Itoa(Format)),
			// Token ids become no smaller by more effort.
			parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest})),
		schema: parquet.SchemaOf(row{}),
	}
}

// Write keeps the record's bytes for a while.
func (p *parquetWriter) Write(r Record) error {
	p.rows = append(p.rows, rowOf(r))
	if p.bytes += len(r.Value); len(p.rows) < groupRows && p.bytes < groupBytes {
		return nil
	}
	return p.flush()
}

// flush has the row group encoded, and writes those that came before it.
func (p *parquetWriter) flush() error {
	if len(p.rows) == 0 {
		return nil
	}
	rows, done, group := p.rows, make(chan encoded, 1), p.w.BeginRowGroup()
	p.rows, p.bytes = nil, 0
	p.under = append(p.under, done)
	go func() { done <- encoded{group, p.encode(group, rows)} }()
	return p.commit(runtime.GOMAXPROCS(0) - 1)
}

func (p *parquetWriter) encode(group *parquet.ConcurrentRowGroupWriter, rows []row) error {
	some := make([]parquet.Row, 0, 64)
	for part := range slices.Chunk(rows, cap(some)) {
		some = some[:0]
		for i := range part {
			some = append(some, p.schema.Deconstruct(nil, &part[i]))
		}
		if _, err := group.WriteRows(some); err != nil {
			return err
		}
	}
	return group.Flush()
}

// commit writes row groups until no more than that many are left.
func (p *parquetWriter) commit(left int) error {
	for len(p.under) > left {
		e := <-p.under[0]
		p.under = p.under[1:]
		if e.err != nil {
			return e.err
		}
		if _, err := e.group.Commit(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parquetWriter) Close() error {
	if err := errors.Join(p.flush(), p.commit(0)); err != nil {
		return err
	}
	return p.w.Close()
}

// batchBytes is about how many encoded bytes of records are a batch, of which a page
// may have to be read twice.
const batchBytes = 4 << 20

// parquetBatches cuts a file's row groups into batches.
func parquetBatches(pf parquetFile, skip int64, f func(Batch) error) error {
	read, all := int64(0), max(pf.NumRows(), 1)
	for g, group := range pf.RowGroups() {
		rows := group.NumRows()
		if skip >= rows {
			read += rows
			skip -= rows
			continue
		}
		size := rows
		if total := pf.Metadata().RowGroups[g].TotalByteSize; total > batchBytes {
			size = max(1, rows*batchBytes/total)
		}
		for from := skip; from < rows; from += size {
			to := min(from+size, rows)
			decode := func(want func(topic, kind string) bool) ([]Record, error) {
				return readRows(group, from, to, want)
			}
			if err := f(Batch{Rows: to - from, Share: float64(read+to) / float64(all), decode: decode}); err != nil {
				return err
			}
		}
		read += rows
		skip = 0
	}
	return nil
}

type parquetFile struct {
	*parquet.File
	file *os.File
}

// openParquet opens an archive's file.
func openParquet(name string) (pf parquetFile, err error) {
	file, err := os.Open(name)
	if err != nil {
		return pf, err
	}
	defer func() {
		// The library panics on some broken files.
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrUnreadable, p)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			file.Close()
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return pf, err
	}
	pf = parquetFile{file: file}
	if pf.File, err = parquet.OpenFile(file, info.Size()); err != nil {
		return pf, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	text, ok := pf.Lookup(formatKey)
	format, err := strconv.Atoi(text)
	switch {
	case !ok || err != nil || format < 1:
		return pf, fmt.Errorf("%w: Parquet without metadata %s: it was written by something other than `sluice export`", ErrUnreadable, formatKey)
	case format > Format:
		return pf, fmt.Errorf("%w: format %d, this build reads up to %d: upgrade it", ErrNewerFormat, format, Format)
	}
	return pf, nil
}

// readRows reads some rows of a row group.
func readRows(group parquet.RowGroup, from, to int64, want func(topic, kind string) bool) (all []Record, err error) {
	defer func() {
		if p := recover(); p != nil {
			all, err = nil, fmt.Errorf("%w: %v", ErrUnreadable, p)
		}
	}()
	reader := parquet.NewGenericRowGroupReader[row](group)
	defer func() { _ = reader.Close() }()
	if err := reader.SeekToRow(from); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	rows := make([]row, 64)
	for left := to - from; left > 0; {
		n, err := reader.Read(rows[:min(int64(len(rows)), left)])
		for i := range rows[:n] {
			if r := rows[i].headed(); want(r.Topic, r.Type()) {
				all = append(all, rows[i].filled(r))
			}
		}
		left -= int64(n)
		clear(rows)
		if errors.Is(err, io.EOF) && left == 0 {
			break
		}
		if err == nil && n == 0 {
			err = io.ErrNoProgress
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %d rows are missing: %w", ErrUnreadable, left, err)
		}
	}
	return all, nil
}
