import { type Test, test } from 'tap'
import { rolloutPath } from '../../../api/node/agent-rollout.ts'
import { rfc3339 } from '../../../daemon/clock.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import type { LocalRequest } from '../../apiserver/filters/in-process-api.ts'
import { usualRules } from '../../controllers/rollouts/rollout-rules.ts'
import type { OfferedRelease } from '../../controllers/rollouts/rollout-wish.ts'
import type { WatchedRollout } from './fleet-update.ts'
import { rolloutInstalls } from './rollout-installs.ts'

const release: OfferedRelease = {
  ...{ program: 'bramble-agent', version: '1.5.0', sequence: 15, digest: '5'.repeat(64), floor: 1 },
}
const { program: _, ...target } = release
const wish = { target, releases: [target], rules: usualRules }
const goingOn: WatchedRollout = { wish, state: { ring: 0 }, status: undefined, isPausedByOperator: false }
const paused: WatchedRollout = { ...goingOn, state: { ring: 0, paused: '1 of 1 nodes failed' } }

function installing(t: Test, given: { rollout?: WatchedRollout; revision?: string; codes?: number[] } = {}) {
  const clock = fakeClock()
  const log = quietLog(t)
  const world = { releases: [release], ...given, codes: [...(given.codes ?? [])] }
  const requests: LocalRequest[] = []
  const made = rolloutInstalls({
    ...{ clock, log },
    releases: async () => world.releases,
    installed: () => ({ version: '1.4.0', sequence: 14 }),
    rollout: () => world.rollout,
    rolloutRevision: () => world.revision,
    async request(request) {
      requests.push(request)
      return { code: world.codes.shift() ?? 200, body: {} }
    },
  })
  const ending = new AbortController()
  const running = [made.releasesLoop, made.pressesLoop].map((loop) => loop.run(ending.signal))
  t.teardown(async () => {
    ending.abort()
    await Promise.all(running)
  })
  return { ...made, clock, log, world, requests }
}

test('a press applies the rollout of the newest release where there was none', async (t) => {
  const { press, clock, requests } = installing(t)
  press()
  await clock.advance(1_000)
  const metadata = { namespace: 'kube-system', name: 'bramble-agent-rollout' }
  t.same(requests, [
    {
      ...{ method: 'PATCH', path: rolloutPath, contentType: 'application/apply-patch+yaml' },
      fieldManager: 'home-assistant',
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { rollout: JSON.stringify(wish) } },
    },
  ])
})

test('a press replaces an earlier rollout: only the object that was looked at', async (t) => {
  const { press, clock, requests } = installing(t, { revision: '7' })
  press()
  await clock.advance(1_000)
  t.match(requests, [{ path: rolloutPath, contentType: 'application/merge-patch+json' }])
  const data = { rollout: JSON.stringify(wish), state: null, status: null, pause: null, resumedAt: null }
  t.same(requests[0]?.body, { metadata: { resourceVersion: '7' }, data })
})

test('a press resumes a rollout that failures have paused, from the time of the press', async (t) => {
  const { press, clock, requests } = installing(t, { rollout: paused, revision: '7' })
  const resumedAt = rfc3339(clock.wallMs())
  press()
  await clock.advance(1_000)
  t.same(requests[0]?.body, { metadata: { resourceVersion: '7' }, data: { pause: null, resumedAt } })
})

test('a press without an effect is logged with the reason, and asks the API nothing', async (t) => {
  const { press, clock, requests, log } = installing(t, { rollout: { ...paused, isPausedByOperator: true } })
  press()
  await clock.advance(1_000)
  t.same(requests, [])
  t.match(log.messages('info'), ['Update of the fleet not requested'])
})

test('a button that is pressed without end requests once a minute', async (t) => {
  const { press, clock, requests } = installing(t)
  for (let second = 0; second < 180; second++) {
    press()
    await clock.advance(1_000)
  }
  t.equal(requests.length, 3)
})

test('a write that another one overtook is repeated with what there is then; a refused one is not', async (t) => {
  const { press, clock, requests, log, world } = installing(t, {
    rollout: paused,
    revision: '7',
    codes: [409, 409, 200],
  })
  press()
  await clock.settle()
  world.revision = '8'
  await clock.advance(2_000)
  t.same(
    requests.map(({ body }) => (body as { metadata: { resourceVersion: string } }).metadata.resourceVersion),
    ['7', '8', '8'],
  )
  world.codes.push(403, 200)
  await clock.advance(60_000)
  press()
  await clock.advance(1_000)
  t.equal(requests.length, 4)
  t.equal(log.messages('warn').length, 3)
  press()
  await clock.advance(1_000)
  t.equal(requests.length, 4, 'not at once again')
  await clock.advance(10_000)
  press()
  await clock.advance(1_000)
  t.equal(requests.length, 5)
})

test('releases that were added are found, and a folder that cannot be read changes nothing', async (t) => {
  const { facts, clock, world } = installing(t)
  await clock.settle()
  t.equal(facts().newest?.target.version, '1.5.0')
  world.releases = [{ ...release, version: '1.6.0', sequence: 16 }, release]
  await clock.advance(30_000)
  t.equal(facts().newest?.target.version, '1.6.0')
  Object.defineProperty(world, 'releases', {
    get() {
      throw new Error('EIO')
    },
  })
  await clock.advance(30_000)
  t.equal(facts().newest?.target.version, '1.6.0')
})
