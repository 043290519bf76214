import { generateKeyPairSync } from 'node:crypto'
import { test } from 'tap'
import type { ConfigMap } from '../../../api/config-map.ts'
import {
  contentProofAnnotation,
  contestedByAnnotation,
  learntDigestAnnotation,
  learntFromAnnotation,
  unprovenFromAnnotation,
} from '../../../api/node/node-checkpoint.ts'
import type { Secret } from '../../../api/secret.ts'
import { contentDigest } from './checkpoint-data.ts'
import { contentProver } from './content-proof.ts'

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const authority = { key: newKey(), hash: 'sha256:one' }
const secret: Secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'db', namespace: 'shop' },
  data: { user: 'YQ==', password: 'Yg==' },
}

function returned<T extends ConfigMap | Secret>(object: T, proof: string | undefined): T {
  return { ...object, metadata: { ...object.metadata, annotations: { [contentProofAnnotation]: proof ?? '' } } }
}

test('what a controller sent is proven to a later one with the same authority', async (t) => {
  const proof = contentProver(() => authority).proofOf(secret)
  const later = contentProver(() => authority)
  t.ok(later.isProven(returned(secret, proof)))
  const other = { user: 'YQ==', password: 'Yg==' }
  t.ok(later.isProven(returned({ ...secret, data: other, type: 'Opaque' }, proof)), 'equal content')
})

test('other content, another name and another kind have no proof, and a missing proof does not match', async (t) => {
  const { proofOf, isProven } = contentProver(() => authority)
  const proof = proofOf(secret)
  const renamed = { ...secret, metadata: { ...secret.metadata, name: 'other' } }
  const moved = { ...secret, metadata: { ...secret.metadata, namespace: 'bank' } }
  const map: ConfigMap = { ...secret, kind: 'ConfigMap' }
  for (const forged of [{ ...secret, data: { password: 'Yw==' } }, { ...secret, type: 'a/b' }, renamed, moved, map])
    t.notOk(isProven(returned(forged, proof)))
  for (const wrong of ['', 'x', `${proof}A`, undefined]) t.notOk(isProven(returned(secret, wrong)))
})

test('a proof of another authority does not count, and proofs follow the authority', async (t) => {
  let current = authority
  const { proofOf, isProven } = contentProver(() => current)
  const before = proofOf(secret)
  current = { key: newKey(), hash: 'sha256:two' }
  t.notOk(isProven(returned(secret, before)))
  t.not(proofOf(secret), before)
  t.ok(isProven(returned(secret, proofOf(secret))))
})

test('content that waits for an operator gets no proof with which a node could come back', async (t) => {
  const { proofOf } = contentProver(() => authority)
  const learnt = { [learntFromAnnotation]: 'pi-1', [learntDigestAnnotation]: contentDigest(secret) }
  const annotated = (more: object) => ({
    ...secret,
    metadata: { ...secret.metadata, annotations: { ...learnt, ...more } },
  })
  t.equal(proofOf(annotated({ [unprovenFromAnnotation]: 'pi-1' })), undefined)
  t.equal(proofOf(annotated({ [contestedByAnnotation]: 'pi-2' })), undefined)
  t.ok(proofOf(annotated({})))
  t.ok(proofOf({ ...annotated({ [unprovenFromAnnotation]: 'pi-1' }), data: { password: 'Yw==' } }), 'changed since')
})

test('the record of a claim is proven as it was sent, and no other text, nor a Secret, with the same proof', async (t) => {
  let current = authority
  const { proofOf, proofOfRecord, isProven, isProvenRecord } = contentProver(() => current)
  const [record, proof] = ['{"claim":{}}', proofOfRecord('{"claim":{}}')]
  t.ok(isProvenRecord({ text: record, proof }))
  for (const wrong of ['', 'x', `${proof}A`, proofOf(secret) ?? ''])
    t.notOk(isProvenRecord({ text: record, proof: wrong }))
  t.notOk(isProvenRecord({ text: `${record} `, proof }))
  t.notOk(isProven(returned(secret, proof)))
  current = { key: newKey(), hash: 'sha256:two' }
  t.notOk(isProvenRecord({ text: record, proof }))
})
