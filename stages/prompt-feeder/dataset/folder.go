package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxEntries bounds how much of a folder is looked through.
const maxEntries = 10_000

// filesOf gives the files to read of a path, in order: itself, or those of one split of a
// Hugging Face dataset, as its libraries save one (save_to_disk) or as the hub keeps one.
func filesOf(path, split string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var dict struct{ Splits []string }
	switch found, err := readJSON(path, "dataset_dict.json", &dict); {
	case err != nil:
		return nil, err
	case found && !slices.Contains(dict.Splits, split):
		return nil, fmt.Errorf("%w: %s has no split %s but %s: choose with --split", ErrInput, path, split, strings.Join(dict.Splits, ", "))
	case found:
		path = filepath.Join(path, split)
	}
	var state struct {
		Files []struct{ Filename string } `json:"_data_files"`
		// Indices select rows of the files, as old versions of the library saved it.
		Indices []any `json:"_indices_data_files"`
	}
	switch found, err := readJSON(path, "state.json", &state); {
	case err != nil:
		return nil, err
	case !found:
		return hubFiles(path, split)
	}
	if len(state.Indices) > 0 {
		return nil, fmt.Errorf("%w: %s selects rows by an index of their own: load it, call flatten_indices and save it again", ErrUnreadable, path)
	}
	var files []string
	for _, f := range state.Files {
		if f.Filename == "" || filepath.Base(f.Filename) != f.Filename {
			return nil, fmt.Errorf("%w: state.json of %s names a file elsewhere: %q", ErrUnreadable, path, f.Filename)
		}
		files = append(files, filepath.Join(path, f.Filename))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: state.json of %s names no data files", ErrUnreadable, path)
	}
	return files, nil
}

func readJSON(dir, name string, into any) (found bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return false, fmt.Errorf("%w: %s of %s: %w", ErrUnreadable, name, dir, err)
	}
	return true, nil
}

// The words for splits in the names of files and folders on the hub.
var splitWords = []string{"train", "training", "test", "testing", "eval", "evaluation", "validation", "valid", "val", "dev"}

// hubFiles finds a split's files by the names of files and folders, as the hub does; files
// of which none names a split are the split train.
func hubFiles(dir, split string) ([]string, error) {
	all, err := dataFiles(dir)
	if err != nil {
		return nil, err
	}
	var files, unnamed []string
	splits := map[string]bool{}
	for _, file := range all {
		words := splitsNamed(file, split)
		for _, w := range words {
			splits[w] = true
		}
		switch {
		case slices.Contains(words, split):
			files = append(files, file)
		case len(words) == 0:
			unnamed = append(unnamed, file)
		}
	}
	if len(splits) == 0 && split == "train" {
		files = unnamed
	}
	if len(files) == 0 {
		named := make([]string, 0, len(splits))
		for w := range splits {
			named = append(named, w)
		}
		slices.Sort(named)
		return nil, fmt.Errorf("%w: %s has no files of the split %s: of %d files the names speak of [%s]: choose with --split, or name a file",
			ErrInput, dir, split, len(all), strings.Join(named, ", "))
	}
	if err := oneDataset(dir, files); err != nil {
		return nil, err
	}
	for i, file := range files {
		files[i] = filepath.Join(dir, file)
	}
	return files, nil
}

// dataFiles lists what may hold rows, relative to dir and in order of names.
func dataFiles(dir string) ([]string, error) {
	var files []string
	entries := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; entries > maxEntries {
			return fmt.Errorf("over %d files: name the folder of the data", maxEntries)
		}
		if path != dir && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if kindOfFile(d.Name()) == "" || d.IsDir() {
			return nil
		}
		relative, err := filepath.Rel(dir, path)
		files = append(files, relative)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: folder %s: %w", ErrUnreadable, dir, err)
	}
	return files, nil
}

// kindOfFile is the extension of a file of rows, "" of others.
func kindOfFile(name string) string {
	ext := filepath.Ext(withoutExt(name, ".gz", ".gzip", ".zst", ".zstd"))
	if slices.Contains([]string{".parquet", ".jsonl", ".csv", ".arrow"}, strings.ToLower(ext)) {
		return strings.ToLower(ext)
	}
	return ""
}

var notInWords = regexp.MustCompile(`[^A-Za-z]+`)

// splitsNamed are the splits that a file's name speaks of, else those that its folders do.
func splitsNamed(file, wanted string) []string {
	parts := strings.Split(filepath.ToSlash(file), "/")
	slices.Reverse(parts)
	for _, part := range parts {
		if part == wanted || strings.HasPrefix(part, wanted+"-") || strings.HasPrefix(part, wanted+".") {
			return []string{wanted}
		}
		var named []string
		for _, word := range notInWords.Split(strings.ToLower(part), -1) {
			if slices.Contains(splitWords, word) {
				named = append(named, word)
			}
		}
		if len(named) > 0 {
			return named
		}
	}
	return nil
}

var shard = regexp.MustCompile(`-\d{5}-of-(\d{5})\b`)

// oneDataset refuses files that are not the whole of one set, or of more than one.
func oneDataset(dir string, files []string) error {
	folder, kind := filepath.Dir(files[0]), kindOfFile(files[0])
	for _, file := range files {
		if other := filepath.Dir(file); other != folder {
			return fmt.Errorf("%w: %s holds several sets, in %s and %s: name one of the folders, or each with an --input of its own", ErrInput, dir, folder, other)
		}
		if other := kindOfFile(file); other != kind {
			return fmt.Errorf("%w: %s has files of %s and of %s, perhaps the same rows twice: name the file", ErrInput, dir, kind, other)
		}
	}
	name := shard.FindStringSubmatch(files[0])
	if name == nil {
		return nil
	}
	if want, _ := strconv.Atoi(name[1]); want != len(files) {
		return fmt.Errorf("%w: %s has %d of the %d parts of %s: fetch the others", ErrUnreadable, dir, len(files), want, files[0])
	}
	return nil
}
