import { test } from 'tap'
import type { Pod } from '../../../../api/pod.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import type { DaemonFacts, DaemonNode } from './daemon-plan.ts'
import { allowsDaemonSurge, planDaemonUpdate } from './daemon-update.ts'

/** `new`, `old`, and with `!` not ready, with `-` leaving; one text for each node, `x:` before it where none belongs. */
function nodes(...texts: readonly string[]): readonly DaemonNode<Pod>[] {
  return texts.map((text, index) => {
    const [, stray, list = ''] = /^(x:)?(.*)$/.exec(text) ?? []
    const pods = list
      .split(' ')
      .filter(Boolean)
      .map((one, at) => {
        const name = `${one.replace(/[!-]/, '')}${index}${at > 0 ? `.${at}` : ''}`
        return aPod({
          status: { conditions: [{ type: 'Ready', status: one.endsWith('!') ? 'False' : 'True' }] },
          metadata: { name, ...(one.endsWith('-') && { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
        })
      })
    const belongs = stray === undefined
    return { name: `n${index}`, exists: true, placement: { shouldRun: belongs, shouldContinue: true }, pods }
  })
}
const facts: DaemonFacts = {
  isUpdated: ({ metadata }) => metadata.name?.startsWith('new') === true,
  minReadySeconds: 0,
  allowsSurge: false,
  nowMs: 0,
}
const planned = (rollingUpdate: object, ...texts: readonly string[]) => {
  const update = planDaemonUpdate(nodes(...texts), { type: 'RollingUpdate', rollingUpdate }, facts)
  return [...update.create, '|', ...update.delete.map(({ metadata }) => metadata.name)].join(' ')
}

test('one node after the other gets the new template', async (t) => {
  const one = (...texts: readonly string[]) => planned({ maxUnavailable: 1, maxSurge: 0 }, ...texts)
  t.equal(one('old', 'old', 'old'), '| old0')
  t.equal(one('old-', 'old', 'old'), '|', 'the first has to go')
  t.equal(one('', 'old', 'old'), '|', 'and its successor to come')
  t.equal(one('new!', 'old', 'old'), '|', 'and to be available')
  t.equal(one('new', 'old', 'old'), '| old1')
  t.equal(one('new', 'new', 'new'), '|')
})

test('an old pod that is not available goes at once', async (t) => {
  t.equal(planned({ maxUnavailable: 1, maxSurge: 0 }, 'new!', 'old!', 'old'), '| old1')
  t.equal(planned({ maxUnavailable: 3, maxSurge: 0 }, 'old!', 'old', 'old', 'old'), '| old0 old1 old2')
})

test('limits may be parts of the nodes, and are rounded up', async (t) => {
  t.equal(planned({ maxUnavailable: '50%', maxSurge: 0 }, 'old', 'old', 'old'), '| old0 old1')
  t.equal(planned({ maxUnavailable: '100%', maxSurge: 0 }, 'old', 'old', 'x:old'), '| old0 old1')
  t.equal(planned({ maxUnavailable: 0, maxSurge: 0 }, 'old', 'old'), '| old0', 'an update ends')
})

test('a part of no nodes replaces nothing: where no pod belongs any more, none would follow', async (t) => {
  t.equal(planned({ maxUnavailable: '50%', maxSurge: 0 }, 'x:old', 'x:old'), '|', 'updatedDesiredNodeCounts')
  t.equal(planned({ maxUnavailable: 0, maxSurge: '50%' }, 'x:old'), '|')
  t.equal(planned({ maxUnavailable: 1, maxSurge: 0 }, 'x:old', 'x:old'), '| old0', 'a number allows it')
})

test('a node with more pods than it should have counts as unavailable', async (t) => {
  t.equal(planned({ maxUnavailable: 1, maxSurge: 0 }, 'old old', 'old'), '|')
  t.equal(planned({ maxUnavailable: 1, maxSurge: 0 }, 'new old', 'old'), '|')
})

test('with surge the new pod comes before the old one goes', async (t) => {
  const surge = (...texts: readonly string[]) => planned({ maxUnavailable: 0, maxSurge: 1 }, ...texts)
  t.equal(surge('old', 'old', 'old'), 'n0 |')
  t.equal(surge('old new!', 'old', 'old'), '|')
  t.equal(surge('old new', 'old', 'old'), 'n1 | old0')
  t.equal(surge('new', 'old', 'old'), 'n1 |')
  t.equal(surge('old new!', 'old!', 'old'), 'n1 |', 'beside what does not serve')
  t.equal(surge('old old', 'old'), '|', 'a node with two of a kind is left to be tidied')
  t.equal(surge('', 'new'), '|', 'the update skips a node without a pod')
})

test('a pod where none belongs any more serves until others do', async (t) => {
  const surge = (...texts: readonly string[]) => planned({ maxUnavailable: 0, maxSurge: 1 }, ...texts)
  t.equal(surge('new!', 'x:old'), '|')
  t.equal(surge('new', 'x:old'), '| old1')
  t.equal(surge('new!', 'x:old!'), '| old1')
})

test('without a rolling update pods are replaced when they are deleted', async (t) => {
  t.same(planDaemonUpdate(nodes('old'), { type: 'OnDelete' }, facts), { create: [], delete: [] })
  t.notOk(allowsDaemonSurge({ type: 'OnDelete' }))
  t.ok(allowsDaemonSurge({ type: 'RollingUpdate', rollingUpdate: { maxSurge: '1%' } }))
  t.notOk(allowsDaemonSurge({ type: 'RollingUpdate', rollingUpdate: { maxSurge: 0 } }))
})

test('a node where no pod belongs and none is counts for nothing', async (t) => {
  t.equal(planned({ maxUnavailable: 1, maxSurge: 0 }, 'x:', 'old'), '| old1')
})

test('only a rolling update has limits', async (t) => {
  t.notOk(allowsDaemonSurge(undefined))
  t.notOk(allowsDaemonSurge({ type: 'RollingUpdate' }))
  t.notOk(allowsDaemonSurge({ type: 'OnDelete', rollingUpdate: { maxSurge: 1 } }))
  t.ok(allowsDaemonSurge({ type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } }))
  t.same(planDaemonUpdate(nodes('old'), undefined, facts), { create: [], delete: [] })
  t.match(planDaemonUpdate(nodes('old'), { type: 'RollingUpdate' }, facts), { delete: { length: 1 } })
})
