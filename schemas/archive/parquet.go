package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/sluice-rl/sluice/schemas/codec"
)

// formatKey is the metadata that marks a Parquet file as an archive.
const formatKey = "sluice.archive.format"

// rowGroup is how many rows are written together: a compromise between memory and
// compression, since a trajectory may have 100 kB.
const rowGroup = 1024

// row is one row of Parquet.
type row struct {
	Topic     string      `parquet:"topic,dict,zstd"`
	Partition int32       `parquet:"partition"`
	Offset    int64       `parquet:"offset,delta"`
	Time      int64       `parquet:"time,timestamp(millisecond),delta"`
	Type      string      `parquet:"type,dict,zstd"`
	Key       []byte      `parquet:"key,zstd"`
	Headers   []rowHeader `parquet:"headers,list"`
	Value     []byte      `parquet:"value,zstd"`

	// For other tools.
	RunID       string `parquet:"run_id,dict,zstd"`
	Incarnation uint32 `parquet:"incarnation"`
	Step        uint64 `parquet:"step"`
	Slot        uint32 `parquet:"slot"`
	SampleIndex *int32 `parquet:"sample_index,optional"`
	Copy        uint64 `parquet:"copy"`
	QuestionID  string `parquet:"question_id,zstd"`
	DataSource  string `parquet:"data_source,dict,zstd"`
}

type rowHeader struct {
	Key   string `parquet:"key,dict,zstd"`
	Value []byte `parquet:"value,zstd"`
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

// parquetWriter writes one file of Parquet.
type parquetWriter struct{ w *parquet.GenericWriter[row] }

func newParquetWriter(w io.Writer) *parquetWriter {
	return &parquetWriter{parquet.NewGenericWriter[row](w,
		parquet.KeyValueMetadata(formatKey, strconv.Itoa(Format)), parquet.MaxRowsPerRowGroup(rowGroup))}
}

func (p *parquetWriter) Write(r Record) error {
	_, err := p.w.Write([]row{rowOf(r)})
	return err
}

func (p *parquetWriter) Close() error { return p.w.Close() }

// batchBytes is about how many encoded bytes of records are a batch, of which a page
// may have to be read twice.
const batchBytes = 4 << 20

// parquetBatches cuts a file's row groups into batches.
func parquetBatches(pf parquetFile, skip int64, f func(Batch) error) error {
	for g, group := range pf.RowGroups() {
		rows := group.NumRows()
		if skip >= rows {
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
			if err := f(Batch{Rows: to - from, decode: decode}); err != nil {
				return err
			}
		}
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
	defer reader.Close()
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
		if err != nil && !(errors.Is(err, io.EOF) && left == 0) || n == 0 && left > 0 {
			return nil, fmt.Errorf("%w: %d rows are missing: %w", ErrUnreadable, left, err)
		}
	}
	return all, nil
}
