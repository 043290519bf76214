import { test } from 'tap'
import { rolloutKey } from '../../../api/node/agent-rollout.ts'
import { firstState, nextRollout } from '../../controllers/rollouts/next-rollout.ts'
import { readRollout, rolloutCommands, rolloutData } from '../../controllers/rollouts/rollout-object.ts'
import { usualRules } from '../../controllers/rollouts/rollout-rules.ts'
import { wishFor } from '../../controllers/rollouts/rollout-wish.ts'
import type { OperatorApi } from './operator-map.ts'
import { readRing } from './ring-option.ts'
import { downloadText, rolloutRulesOf, rolloutText, startRollout, updatesCommand } from './updates-command.ts'

const none = {
  ...{ ring: [], 'per-link': undefined, 'per-zone': undefined, 'at-once': undefined },
  ...{ 'failure-count': undefined, 'failure-percent': undefined },
}
const served = (version: string, sequence: number) => ({
  ...{
    program: 'bramble-agent' as const,
    version,
    sequence,
    floor: 1,
    digest: String(sequence % 10).repeat(64),
    archs: ['arm64'],
    downloads: [{ arch: 'arm64', size: 480_000 }],
  },
})
const releases = [served('2.1.0', 21), served('2.0.0', 20), served('1.0.0', 10)]

test('a ring is a number of nodes, a share of the fleet, or a label', async (t) => {
  t.same(readRing('canary=1,1h'), { name: 'canary', soakSeconds: 3600, count: 1 })
  t.same(readRing('early=10%,24h'), { name: 'early', soakSeconds: 86_400, percent: 10 })
  t.same(readRing('lab=stage=test,2m'), { name: 'lab', soakSeconds: 120, labels: { stage: 'test' } })
  for (const written of ['', 'canary', 'canary=1', 'canary=1,', 'canary=,1h', 'canary=x,1h', 'canary=1,soon', '=1,1h'])
    t.equal(readRing(written), undefined, written)
})

test('without options the usual rules hold; with them they are checked', async (t) => {
  t.same(rolloutRulesOf(none), usualRules)
  t.match(rolloutRulesOf({ ...none, ring: ['a=1%,0', 'b=5,1h'], 'at-once': 50, 'failure-percent': 10 }), {
    rings: [
      { name: 'a', percent: 1 },
      { name: 'b', count: 5 },
    ],
    ...{ perLink: 1, atOnce: 50, failurePercent: 10 },
  })
  t.match(rolloutRulesOf({ ...none, ring: ['canary=one,1h'] }), /--ring canary=one,1h must be like/)
  t.match(rolloutRulesOf({ ...none, ring: ['a=1,0', 'a=2,0'] }), /taken twice/)
})

test('a rollout is started where there was one, and where there was none', async (t) => {
  const sent: string[] = []
  const answering = (status: number): OperatorApi => ({
    client: {
      get: async () => ({ status: 500, body: {}, dateHeader: undefined }),
      async patch(path, body) {
        sent.push(`patch ${path} ${Object.keys((body as { data: object }).data).join()}`)
        return { status, body: {}, dateHeader: undefined }
      },
      async post(path) {
        sent.push(`post ${path}`)
        return { status: 201, body: {}, dateHeader: undefined }
      },
    },
    signal: new AbortController().signal,
  })
  const wish = wishFor('2.0.0', releases, usualRules)
  const path = '/api/v1/namespaces/kube-system/configmaps'
  t.match(await startRollout(wish, answering(200)), /The rollout of 2\.0\.0 begins/)
  await startRollout(wish, answering(404))
  const patch = `patch ${path}/${rolloutKey.name} rollout,state,status,pause,resumedAt`
  t.same(sent, [patch, patch, `post ${path}`])
  await t.rejects(startRollout(wish, answering(403)), { message: /Cannot start the rollout/ })
})

test('the status shows the rings, why it pauses, and which nodes are not waited for', async (t) => {
  const wish = wishFor('2.0.0', releases, usualRules)
  const data = { rollout: rolloutCommands.start(wish).rollout }
  const map = (more: { readonly [key: string]: string }) => ({
    ...{ apiVersion: 'v1' as const, kind: 'ConfigMap' as const, metadata: rolloutKey },
    data: { ...data, ...more },
  })
  t.match(rolloutText(undefined), /No rollout was started/)
  t.match(rolloutText(map({})), /has not begun/)
  const { state, status } = nextRollout(
    { ...firstState, paused: '1 of 1 nodes failed' },
    { ...wish, nodes: [], nowMs: 0 },
  )
  const paused = map(rolloutData(map({}), wish, state, { ...status, stragglers: ['pi-9'] }))
  t.equal(
    rolloutText(paused),
    [
      'Release 2.0.0: Paused. 1 of 1 nodes failed\n',
      'RING     NODES   COMMITTED   UPDATING   FAILED',
      'canary   0       0           0          0',
      'rest     0       0           0          0\n',
      'Not waited for: pi-9\n',
    ].join('\n'),
  )
  t.match(readRollout(paused), { state: { paused: '1 of 1 nodes failed' } })
  t.match(rolloutText(map({ rollout: '{}' })), /cannot be used/)
})

test('the list has how much a node downloads, of the architecture that needs most', async (t) => {
  const size = (arch: string, bytes: number, fromVersion?: string) => ({
    ...{ arch, size: bytes },
    ...(fromVersion !== undefined && { fromVersion }),
  })
  t.equal(downloadText([size('amd64', 2_600_000), size('arm64', 2_700_001)]), '2701 kB')
  t.equal(
    downloadText([size('arm64', 1, '1.4.0'), size('arm64', 480_000), size('amd64', 17_100, '1.4.0')]),
    '480 kB, 18 kB from 1.4.0',
  )
})

test('the help names all forms', async (t) => {
  const printed: string[] = []
  const output = {
    stdout: (text: string) => void printed.push(text),
    stderr: () => undefined,
    signal: new AbortController().signal,
  }
  t.equal(await updatesCommand(['--help'], output), 0)
  for (const form of ['list', 'add FOLDER', 'start VERSION', 'status', 'pause', 'resume', '--ring'])
    t.match(printed.join(''), form)
})
