// Package codec turns messages of schemas/sluicev1 into Kafka records and back.
//
// A record is: the protobuf message as value; the question id or run id as key; and
// three headers: sluice-type (the message's name, "CodeCall"), sluice-schema (the
// version of these contracts) and sluice-origin (an encoded Origin, so that a record
// whose value cannot be read can still be traced and its trajectory ended). Stages write
// all of them. Who writes from outside needs none where the topic carries one type:
// without sluice-type it is the topic's, without sluice-schema it is version 1.
//
// Promises: Encode and Decode refuse what Validate refuses, naming the field, the
// lengths or the value; fields that this version does not know survive a stage that
// passes the message on (change a decoded message, do not build a new one); nothing
// is repaired, cut or padded. Arrays of one value per token are bytes, which package
// tokens reads and writes; whether they are what was sampled, package custody says.
package codec
