import { generateKeyPairSync } from 'node:crypto'
import { test } from 'tap'
import { decode } from '../../api/decode.ts'
import { integer, mapOf, object, text as schemaText } from '../../api/schema.ts'
import { signatureKeyText, signFile } from './minisign.ts'
import {
  admitRelease,
  checkRelease,
  type ReleaseKeys,
  type ReleaseMachine,
  type ReleaseManifest,
  readReleaseKeys,
} from './release-manifest.ts'
import { initialUpdateState, type UpdateState, withRejected } from './update-state.ts'

const [one, two, three, stranger] = [1, 2, 3, 4].map(() => generateKeyPairSync('ed25519').privateKey)
if (one === undefined || two === undefined || three === undefined || stranger === undefined) throw new Error('No keys')
const keysOf = (threshold: number): ReleaseKeys => ({ threshold, keys: [one, two, three].map(signatureKeyText) })
const sha256 = 'a'.repeat(64)
const manifest: ReleaseManifest = {
  format: 1,
  program: 'bramble-agent',
  version: '1.5.0',
  sequence: 5,
  floor: 3,
  runtime: '22',
  archives: { arm64: { size: 1000, sha256 } },
}
const file = Buffer.from(JSON.stringify(manifest))
const signed = (by: (typeof one)[], what: Uint8Array = file) => by.map((key) => signFile(what, key, ''))

test('a release counts with the signatures of as many keys as the threshold', async (t) => {
  t.same(checkRelease(file, signed([one, three]), keysOf(2)), { ok: true, value: manifest })
  t.equal(checkRelease(file, signed([two]), keysOf(1)).ok, true)
  const refused = { ok: false, why: 'release.json is signed by 1 of the keys of this machine, and needs 2' }
  t.same(checkRelease(file, signed([one]), keysOf(2)), refused)
  t.same(checkRelease(file, signed([one, one, one]), keysOf(2)), refused, 'one key twice is one key')
  t.same(checkRelease(file, signed([one, stranger]), keysOf(2)), refused, 'a key of somebody else')
  t.same(
    checkRelease(file, [...signed([one]), ...signed([two], Buffer.from('{}'))], keysOf(2)),
    refused,
    'another file',
  )
})

test('deltas are read, and a version that does not support them reads the same release without them', async (t) => {
  const deltas = [{ base: 'b'.repeat(64), baseVersion: '1.4.0', size: 20, sha256: 'c'.repeat(64) }]
  const archives = { arm64: { size: 1000, sha256, deltas } }
  const text = Buffer.from(JSON.stringify({ ...manifest, archives }))
  t.same(checkRelease(text, signed([one], text), keysOf(1)), { ok: true, value: { ...manifest, archives } })
  // What releases were read with before there were deltas.
  const Earlier = object({ archives: mapOf(object({ size: integer, sha256: schemaText })) })
  t.match(decode(Earlier, JSON.parse(text.toString())), {
    ...{ ok: true, value: { archives: manifest.archives }, unknownFields: Array },
  })
})

test('a manifest that is signed and cannot be right is refused', async (t) => {
  const why = (content: string | object) => {
    const text = Buffer.from(typeof content === 'string' ? content : JSON.stringify(content))
    const checked = checkRelease(text, signed([one], text), keysOf(1))
    return checked.ok ? undefined : checked.why
  }
  t.match(why('no JSON'), /format/)
  t.match(why({ ...manifest, format: 2 }), /format/)
  for (const version of ['', '../1', '1/2', '1 2', 'x'.repeat(65)])
    t.match(why({ ...manifest, version }), /invalid version/)
  for (const sequence of [0, -1, 2 ** 60]) t.match(why({ ...manifest, sequence }), /invalid sequence/)
  t.match(why({ ...manifest, filler: 'x'.repeat(70_000) }), /larger than 64 KiB/)
})

test('keys need a threshold that they can reach', async (t) => {
  const { keys } = keysOf(1)
  const read = (threshold: number, list: readonly string[]) =>
    readReleaseKeys(JSON.stringify({ threshold, keys: list }))
  t.same(read(2, keys), { threshold: 2, keys })
  for (const [threshold, list] of [
    [0, keys],
    [4, keys],
    [1, []],
    [2, keys.slice(0, 1).concat(keys.slice(0, 1))],
    [1, ['x']],
  ] as const)
    t.equal(read(threshold, list), undefined)
  t.equal(readReleaseKeys('{'), undefined)
})

const machine: ReleaseMachine = {
  program: 'bramble-agent',
  arch: 'arm64',
  runtimes: ['22'],
  base: { version: '1.3.0', sequence: 3 },
  freeBytes: 3000,
  isForced: false,
}
const committed = { version: '1.4.0', sequence: 4, digest: 'b'.repeat(64) }
const state: UpdateState = { ...initialUpdateState, highestSequence: 4, committed }

test('the machine tries a release that fits it', async (t) => {
  t.same(admitRelease(manifest, state, machine), {
    ok: true,
    value: { version: '1.5.0', sequence: 5, digest: sha256, size: 1000 },
  })
  t.equal(admitRelease(manifest, initialUpdateState, machine).ok, true, 'after the package')
})

const rejected = withRejected(state, { version: '1.5.0', sequence: 5, digest: sha256 }, '3 starts failed')
const refusals: { readonly [name: string]: readonly [ReleaseManifest, UpdateState, ReleaseMachine, RegExp] } = {
  'one of another program': [
    { ...manifest, program: 'bramble-controller' },
    state,
    machine,
    /one of bramble-controller/,
  ],
  'one without an archive for it': [manifest, state, { ...machine, arch: 'armhf' }, /no archive for armhf/],
  'one with a name of Object.prototype as its architecture': [
    manifest,
    state,
    { ...machine, arch: 'constructor' },
    /no archive|invalid archive/,
  ],
  'an archive of 10 GB': [
    { ...manifest, archives: { arm64: { size: 10e9, sha256 } } },
    state,
    machine,
    /invalid archive/,
  ],
  'an archive without a hash': [
    { ...manifest, archives: { arm64: { size: 10, sha256: '../x' } } },
    state,
    machine,
    /invalid archive/,
  ],
  'the one that is installed': [{ ...manifest, sequence: 4 }, state, machine, /is installed already/],
  'one that is older than the package': [{ ...manifest, sequence: 2 }, state, machine, /downgrade it with apt/],
  'one that is older than a committed one': [
    { ...manifest, sequence: 5 },
    { ...state, highestSequence: 6 },
    machine,
    /older than one that was committed/,
  ],
  'one whose floor was not reached': [{ ...manifest, floor: 5 }, state, machine, /install a release between/],
  'one that was rejected': [manifest, rejected, machine, /was rejected on this machine: 3 starts failed/],
  'one for a Node.js that is not there': [{ ...manifest, runtime: '24' }, state, machine, /upgrade bramble-runtime/],
  'one for which there is no room': [manifest, state, { ...machine, freeBytes: 2999 }, /MiB free/],
}
for (const [name, [release, before, facts, why]] of Object.entries(refusals)) {
  test(`the machine refuses ${name}`, async (t) => {
    const admitted = admitRelease(release, before, facts)
    t.match(admitted.ok ? 'admitted' : admitted.why, why)
  })
}

test('with force an earlier or a rejected version is tried, and none that is older than the package', async (t) => {
  const forced = { ...machine, isForced: true }
  t.equal(admitRelease(manifest, { ...state, highestSequence: 6 }, forced).ok, true)
  t.equal(admitRelease(manifest, rejected, forced).ok, true)
  t.equal(admitRelease({ ...manifest, sequence: 2 }, state, forced).ok, false)
  t.equal(admitRelease({ ...manifest, floor: 5 }, state, forced).ok, false)
})
