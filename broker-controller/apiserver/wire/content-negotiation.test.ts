import { test } from 'tap'
import {
  aggregatedDiscovery,
  answerEncoding,
  answerForm,
  assertObjectForm,
  bodyForm,
  patchForm,
  prefersProtobufDocument,
  unsupportedBody,
  watchForm,
} from './content-negotiation.ts'

const table =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json'

test('the first supported media type in Accept is used', async (t) => {
  t.equal(answerForm(undefined), 'object')
  t.equal(answerForm('application/json, */*'), 'object')
  t.equal(answerForm(table), 'table')
  t.equal(answerForm('application/vnd.kubernetes.protobuf,application/json'), 'object')
  t.equal(answerForm('application/vnd.kubernetes.protobuf, */*'), 'object')
  t.equal(answerForm('application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'), 'metadata')
  t.equal(answerForm('application/json; charset=utf-8'), 'object')
  t.throws(() => answerForm('application/vnd.kubernetes.protobuf'), { code: 406 })
})

test('an answer that is not a stored object is given as itself only', async (t) => {
  const rows = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  for (const accept of [undefined, 'application/yaml', '*/*', `${rows},application/json`]) assertObjectForm(accept)
  for (const accept of [rows, rows.replace('Table', 'PartialObjectMetadata'), 'text/plain']) {
    t.throws(() => assertObjectForm(accept), { code: 406, message: /only the following media types are accepted/ })
  }
})

test('aggregated discovery is served on request, in the version requested', async (t) => {
  const v2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const v2beta1 = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList'
  t.equal(aggregatedDiscovery(`${v2},${v2beta1},application/json`), 'v2')
  t.equal(aggregatedDiscovery(`${v2beta1},application/json`), 'v2beta1')
  t.equal(aggregatedDiscovery('application/json'), undefined)
  t.equal(aggregatedDiscovery(undefined), undefined)
})

test('a body is JSON unless its Content-Type is YAML or protobuf', async (t) => {
  t.equal(bodyForm(undefined), 'json', '`scale --current-replicas` sends no Content-Type')
  t.equal(bodyForm('application/json; charset=utf-8'), 'json')
  t.equal(bodyForm('application/yaml'), 'yaml')
  t.equal(bodyForm('application/vnd.kubernetes.protobuf'), 'protobuf')
  t.throws(() => bodyForm('application/cbor'), {
    code: 415,
    message: /^the body of the request was in an unknown format - accepted media types include: application\/json/,
  })
})

test('patches come in four forms', async (t) => {
  t.equal(patchForm('application/merge-patch+json'), 'merge')
  t.equal(patchForm('application/strategic-merge-patch+json'), 'strategic')
  t.equal(patchForm('application/json-patch+json'), 'json')
  t.equal(patchForm('application/apply-patch+yaml'), 'apply')
  t.throws(() => patchForm(undefined), { code: 415 })
})

test('the OpenAPI document is JSON unless protobuf is named before it', async (t) => {
  const protobuf = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
  t.ok(prefersProtobufDocument(protobuf))
  t.ok(prefersProtobufDocument('application/com.github.proto-openapi.spec.v2.v1.0+protobuf,application/json'))
  for (const accept of [undefined, '', '*/*', 'application/json', 'text/html', `application/json,${protobuf}`]) {
    t.notOk(prefersProtobufDocument(accept), accept ?? 'no header')
  }
})

test('the text of an answer is that of the first clause that can be written', async (t) => {
  t.equal(answerEncoding('application/yaml'), 'yaml')
  t.equal(answerEncoding('text/html, application/yaml, application/json'), 'yaml')
  t.equal(answerEncoding('application/json, application/yaml'), 'json')
  t.equal(answerEncoding('application/*'), 'json')
  t.equal(answerEncoding('APPLICATION/YAML'), 'yaml', 'types have no case (RFC 9110, 8.3.1)')
  for (const accept of [undefined, '', 'text/html']) t.equal(answerEncoding(accept), 'json', `${accept}`)
})

test('a watch is JSON, in any of the forms', async (t) => {
  t.equal(watchForm(undefined), 'object')
  t.equal(watchForm(table), 'table')
  t.equal(watchForm('application/yaml, application/json'), 'object')
  t.throws(() => watchForm('application/yaml'), {
    code: 406,
    message: 'only the following media types are accepted: application/json',
  })
})

test('an unknown form of an object is passed over, and what is accepted is named where there is no other', async (t) => {
  const form = (as: string, g = 'meta.k8s.io') => `application/json;as=${as};v=v1;g=${g}`
  t.equal(answerForm(form('PartialObjectMetadata')), 'metadata')
  t.equal(answerForm(`${form('Sheet')}, ${form('Table')}`), 'table')
  t.equal(answerForm(`${form('Table', 'example.com')}, application/json`), 'object')
  for (const accept of [form('Sheet'), form('Table', 'example.com'), 'application/json;as=Table']) {
    t.throws(() => answerForm(accept), {
      code: 406,
      message: 'only the following media types are accepted: application/json, application/yaml',
    })
  }
})

test('parameters may be quoted, spaced and in capitals', async (t) => {
  t.equal(answerForm('application/json; AS = "Table" ; v=v1; g = "meta.k8s.io"'), 'table')
  t.throws(() => answerForm('application/json;as=Ta"ble;g=meta.k8s.io'), { code: 406 })
})

test('the plain lists of discovery are served where they come first, or the version is unknown', async (t) => {
  const list = (v: string) => `application/json;g=apidiscovery.k8s.io;v=${v};as=APIGroupDiscoveryList`
  t.equal(aggregatedDiscovery(`application/json,${list('v2')}`), undefined)
  t.equal(aggregatedDiscovery(`${list('v3')},${list('v2')}`), 'v2')
  t.equal(aggregatedDiscovery(list('v3')), undefined)
  t.equal(aggregatedDiscovery(`text/plain,${list('v2')}`), 'v2')
  t.equal(aggregatedDiscovery(list('v2').replace('/json', '/yaml')), undefined, 'only JSON')
})

test('a refused body keeps the reason for the log', async (t) => {
  const cause = new Error('odd bytes')
  t.equal(unsupportedBody(cause).cause, cause)
})
