import { test } from 'tap'
import { type DescriptionState, refreshedDescription } from './description-state.ts'
import type { ExtensionAnswer } from './extension-servers.ts'

const version = { group: 'wardle.example.com', version: 'v1' }
const document = (description: string) =>
  Buffer.from(
    JSON.stringify({
      swagger: '2.0',
      paths: { '/apis/wardle.example.com/v1/a': { get: { responses: {} } } },
      definitions: { A: { description } },
    }),
  )
const empty = Buffer.alloc(0)

/** Answers in turn; what was asked for is in `asked`. */
function asking(...answers: readonly (ExtensionAnswer | Error)[]) {
  const left = [...answers]
  const asked: (string | undefined)[] = []
  const ask = async (ifNoneMatch: string | undefined) => {
    asked.push(ifNoneMatch)
    const next = left.shift() ?? new Error('asked too often')
    if (next instanceof Error) throw next
    return next
  }
  const at = (nowMs: number, before?: DescriptionState, mostLength = 10_000) =>
    refreshedDescription(before, { version, mostLength: () => mostLength, nowMs, ask })
  return { asked, at }
}

const minute = 60_000

test('a description is asked for by its tag, and read again when it is another one', async (t) => {
  const { asked, at } = asking(
    { code: 200, body: document('a'), etag: '"1"' },
    { code: 304, body: empty },
    { code: 200, body: document('b'), etag: '"2"' },
  )
  const first = await at(0)
  const second = await at(minute, first)
  const third = await at(2 * minute, second)
  t.same(asked, [undefined, '"1"', '"1"'])
  t.equal(second.kept, first.kept)
  t.not(third.kept?.hash, first.kept?.hash)
  t.equal(third.etag, '"2"')
})

test('the same body without a tag is not read again', async (t) => {
  const { at } = asking({ code: 200, body: document('a') }, { code: 200, body: document('a') })
  const first = await at(0)
  t.equal((await at(minute, first)).kept, first.kept)
})

test('while its server fails the last description is kept, and asked for ever more seldom', async (t) => {
  const failures = Array.from({ length: 9 }, () => new Error('no route'))
  const { asked, at } = asking({ code: 200, body: document('a') }, ...failures, { code: 200, body: document('b') })
  let state = await at(0)
  const { kept } = state
  const waits: number[] = []
  let nowMs = 0
  for (const _ of failures) {
    state = await at(nowMs, state)
    t.equal(state.kept, kept)
    t.equal(state.problem, 'no route')
    waits.push((state.nextMs - nowMs) / minute)
    const before = asked.length
    t.equal(await at(state.nextMs - 1, state), state)
    t.equal(asked.length, before, 'not asked before')
    nowMs = state.nextMs
  }
  t.same(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60])
  state = await at(nowMs, state)
  t.match(state, { failures: 0, problem: undefined })
  t.not(state.kept?.hash, kept?.hash)
})

test('a server without a description is not a problem', async (t) => {
  const { at } = asking({ code: 404, body: empty })
  t.match(await at(0), { kept: undefined, problem: undefined, nextMs: minute })
})

test('an answer that is not a description is a problem', async (t) => {
  for (const answer of [
    { code: 500, body: empty },
    { code: 302, body: empty },
    { code: 304, body: empty },
    { code: 200, body: Buffer.from('<html>') },
    { code: 200, body: empty },
  ]) {
    const { kept, problem } = await asking(answer).at(0)
    t.equal(kept, undefined)
    t.type(problem, 'string', JSON.stringify(answer))
  }
})

test('a description for which there is no room is left out', async (t) => {
  const { at } = asking({ code: 200, body: document('a') })
  t.match(await at(0, undefined, 10), { kept: undefined, problem: /too long together/ })
})
