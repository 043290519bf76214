import { test } from 'tap'
import {
  aggregatedDiscovery,
  answerForm,
  assertObjectForm,
  bodyForm,
  patchForm,
  prefersJson,
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

test('an answer that is no stored object is given as itself only', async (t) => {
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

test('patches come in three forms; applying on the server is not one of them', async (t) => {
  t.equal(patchForm('application/merge-patch+json'), 'merge')
  t.equal(patchForm('application/strategic-merge-patch+json'), 'strategic')
  t.equal(patchForm('application/json-patch+json'), 'json')
  t.throws(() => patchForm('application/apply-patch+yaml'), { code: 415 })
  t.throws(() => patchForm(undefined), { code: 415 })
})

test('the description is JSON only if JSON comes first in Accept', async (t) => {
  t.ok(prefersJson('application/json'))
  t.notOk(prefersJson('application/com.github.proto-openapi.spec.v2@v1.0+protobuf'))
  t.notOk(prefersJson('*/*'))
})
