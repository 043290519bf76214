import { test } from 'tap'
import { longestReleaseRange, type ReleaseFile } from '../../../api/node/release-paths.ts'
import { releaseAnswer } from './release-answer.ts'

const node = { user: 'system:node:pi-1', groups: ['system:nodes', 'system:authenticated'] }
const digest = 'a'.repeat(64)
const archive = Buffer.from(Uint8Array.from({ length: longestReleaseRange + 10 }, (_, at) => at % 251))
const stored: { readonly [file: string]: Buffer } = { 'release.json': Buffer.from('{}'), 'agent.tar': archive }
const releases = {
  read: async ({ file }: ReleaseFile, from: number, most: number) => {
    const whole = stored[file]
    return whole && { size: whole.length, bytes: whole.subarray(from, from + most) }
  },
}

async function answered(file: string, range?: string, identity = node) {
  const answer = await releaseAnswer({ wanted: { digest, file }, identity, range }, { releases })
  if (answer.kind !== 'plain') throw new Error(answer.kind)
  return { code: answer.code, range: answer.headers['content-range'], bytes: answer.bytes }
}

test('a small file is read whole', async (t) => {
  t.same(await answered('release.json'), { code: 200, range: undefined, bytes: stored['release.json'] })
})

const size = archive.length
const ranges: readonly (readonly [asked: string, from: number, to: number])[] = [
  ['bytes=0-0', 0, 0],
  ['bytes=5-9', 5, 9],
  [`bytes=${size - 3}-`, size - 3, size - 1],
  [`bytes=${size - 3}-${size + 50}`, size - 3, size - 1],
  ['bytes=0-', 0, longestReleaseRange - 1],
  [`bytes=7-${size * 10}`, 7, longestReleaseRange + 6],
]
for (const [asked, from, to] of ranges) {
  test(`a range of a file is read: ${asked}`, async (t) => {
    const answer = await answered('agent.tar', asked)
    t.same([answer.code, answer.range], [206, `bytes ${from}-${to}/${size}`])
    t.ok(answer.bytes.equals(archive.subarray(from, to + 1)))
  })
}

test('a range behind the end is answered with the size', async (t) => {
  t.match(await answered('agent.tar', `bytes=${size}-`), { code: 416, range: `bytes */${size}` })
})

test('what cannot be answered in bounded memory, or is not a range, is refused', async (t) => {
  await t.rejects(answered('agent.tar'), { message: /ask for ranges of at most 1048576/ })
  for (const range of ['bytes=-5', 'bytes=5-4', 'bytes=0-1,3-4', 'lines=0-1', 'bytes=a-b', `bytes=${'9'.repeat(30)}-`])
    await t.rejects(answered('agent.tar', range), { message: /Range must be/ }, range)
})

test('a file that does not exist is not found, nor any where the controller has no releases', async (t) => {
  await t.rejects(answered('other'), { message: /has no file/ })
  await t.rejects(releaseAnswer({ wanted: { digest, file: 'release.json' }, identity: node, range: undefined }, {}), {
    message: /has no file/,
  })
})

test('anybody but a node is refused, an administrator too', async (t) => {
  for (const groups of [['system:masters'], ['system:bootstrappers'], ['system:unauthenticated']])
    await t.rejects(answered('release.json', undefined, { user: 'admin', groups }), { message: /by nodes only/ })
})
