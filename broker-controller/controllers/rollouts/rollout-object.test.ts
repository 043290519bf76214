import { test } from 'tap'
import { rolloutFields } from '../../../api/node/agent-rollout.ts'
import { firstState, type RolloutState, type RolloutStatus } from './next-rollout.ts'
import {
  failedRollout,
  type RolloutWish,
  readConfigMap,
  readRollout,
  rolloutCommands,
  rolloutData,
} from './rollout-object.ts'
import { usualRules } from './rollout-rules.ts'

type Data = { readonly [key: string]: string }

const digest = 'a'.repeat(64)
const target = { version: '2.0.0', sequence: 20, digest, floor: 10 }
const wish: RolloutWish = { target, releases: [target], rules: usualRules }
const status: RolloutStatus = { phase: 'Progressing', message: 'Ring canary: 1 nodes to go', rings: [], stragglers: [] }
const resumedAt = '2026-01-02T00:00:00Z'
const failed = '1 of 1 nodes failed'

const written = (state: RolloutState | undefined, more: Data = {}): { readonly data: Data } => ({
  data: {
    [rolloutFields.wish]: JSON.stringify(wish),
    ...(state && { [rolloutFields.state]: JSON.stringify({ target: digest, ...state }) }),
    ...more,
  },
})
const stateOf = (state: RolloutState | undefined, more: Data = {}, nowMs = 7) => {
  const read = readRollout(written(state, more), nowMs)
  return typeof read === 'object' ? read.state : read
}

test('what cannot be a rollout has its reason, and no rollout has none', async (t) => {
  const unreadable = 'the field "rollout" cannot be read'
  const foreign = 'the field "rollout" names something that is not a release'
  const of = (over: object) => ({ data: { [rolloutFields.wish]: JSON.stringify({ ...wish, ...over }) } })
  const cases: readonly (readonly [title: string, map: { data?: Data }, expected: string | undefined])[] = [
    ['no data', {}, undefined],
    ['no wish', { data: { other: '' } }, undefined],
    ['no JSON', { data: { [rolloutFields.wish]: '{' } }, unreadable],
    ['no target', of({ target: undefined }), unreadable],
    ['rules of another kind', of({ rules: { ...usualRules, failureCount: 'one' } }), unreadable],
    ['invalid rules', of({ rules: { ...usualRules, failureCount: 0 } }), 'failureCount: must be at least 1'],
    ['an invalid digest', of({ target: { ...target, digest: 'two' } }), foreign],
    ['a version with a space', of({ target: { ...target, version: '2 0' } }), foreign],
    ['a release without a number', of({ releases: [target, { ...target, sequence: 0 }] }), foreign],
    ['too many releases', of({ releases: Array.from({ length: 65 }, () => target) }), foreign],
  ]
  for (const [title, map, expected] of cases) t.equal(readRollout(map), expected, title)
  t.type(readRollout(of({ releases: Array.from({ length: 64 }, () => target) })), 'object')
  t.same(readRollout(written(undefined)), { wish, state: firstState })
})

test('the state of another rollout, or one that cannot be read, is a beginning', async (t) => {
  const state: RolloutState = { ring: 1, soakSinceMs: 5 }
  t.same(stateOf(state), state)
  const other = { [rolloutFields.state]: JSON.stringify({ target: 'b'.repeat(64), ring: 1 }) }
  t.same(stateOf(undefined, other), firstState)
  t.same(stateOf({ ring: -1 }), firstState)
  t.same(stateOf(undefined, { [rolloutFields.state]: '{' }), firstState)
})

test('a pause of the controller ends with a newer resume, one of an operator with its field', async (t) => {
  const paused: RolloutState = { ring: 1, paused: failed }
  t.same(stateOf(paused), paused)
  t.same(stateOf(paused, { resumedAt }), { ring: 1, resumedMs: 7, resumedAt })
  const again = { ...paused, resumedMs: 3, resumedAt }
  t.same(stateOf(again, { resumedAt }), again, 'it has failed since')
  t.same(stateOf(paused, { resumedAt: 'soon' }), paused)
  t.same(stateOf({ ring: 1 }, { pause: 'holidays' }), { ring: 1, paused: 'holidays' })
  t.match(stateOf(paused, { pause: 'holidays', resumedAt }), { paused: 'holidays', resumedMs: 7 })
})

test('failures pause a rollout, and a pause of an operator is not a failure', async (t) => {
  const paused: RolloutState = { ring: 0, paused: failed }
  t.same(failedRollout(written(paused)), { version: '2.0.0', reason: failed })
  t.equal(failedRollout(written({ ring: 0 })), undefined)
  t.equal(failedRollout(written(paused, { pause: 'holidays' })), undefined)
  t.equal(failedRollout(written({ ring: 0 }, { pause: 'holidays' })), undefined)
  t.equal(failedRollout(written(paused, { resumedAt })), undefined, 'it was resumed')
  t.equal(failedRollout({ data: { [rolloutFields.wish]: '{' } }), undefined)
  t.equal(failedRollout({}), undefined)
})

test('the controller writes its state, and no pause of an operator as its own', async (t) => {
  const stateIn = (data: Data, state: RolloutState) =>
    JSON.parse(rolloutData({ data }, wish, state, status)[rolloutFields.state] ?? '')
  t.same(stateIn({}, { ring: 1, soakSinceMs: 5 }), { target: digest, ring: 1, soakSinceMs: 5 })
  t.same(stateIn({}, { ring: 1, paused: failed }), { target: digest, ring: 1, paused: failed })
  t.same(stateIn({ pause: 'holidays' }, { ring: 1, paused: 'holidays' }), { target: digest, ring: 1 })
  t.same(stateIn({ pause: 'holidays' }, { ring: 1, paused: failed }), { target: digest, ring: 1, paused: failed })
})

test('what is written is read again, with at most a hundred stragglers and their number', async (t) => {
  const state: RolloutState = { ring: 2, soakSinceMs: 5, resumedMs: 3, resumedAt }
  const stragglers = Array.from({ length: 101 }, (_, index) => `pi-${index}`)
  const data = rolloutData({}, wish, state, { ...status, stragglers })
  t.same(stateOf(undefined, { ...data, resumedAt }), state)
  const shown = JSON.parse(data[rolloutFields.status] ?? '')
  t.match(shown, { ...status, stragglers: stragglers.slice(0, 100), stragglerCount: 101 })
  t.equal(shown.stragglers.length, 100)
})

test('a start removes everything of the rollout before', async (t) => {
  t.same(rolloutCommands.start(wish), {
    ...{ rollout: JSON.stringify(wish), state: null, status: null, pause: null, resumedAt: null },
  })
  t.same(rolloutCommands.pause('holidays'), { pause: 'holidays' })
  t.same(rolloutCommands.resume(resumedAt), { pause: null, resumedAt })
})

test('a ConfigMap is read, and nothing else', async (t) => {
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { a: '1' } }
  t.match(readConfigMap(map), { data: { a: '1' } })
  t.equal(readConfigMap(undefined), undefined)
  t.equal(readConfigMap({ ...map, data: { a: 1 } }), undefined)
})
