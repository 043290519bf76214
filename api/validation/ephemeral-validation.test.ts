import { test } from 'tap'
import type { EphemeralContainer } from '../pod.ts'
import { problemText } from '../problem.ts'
import { earlyProblems, ephemeralProblems } from './ephemeral-validation.ts'
import { withPodDefaults } from './pod-defaults.ts'

const wrong = (...ephemeralContainers: EphemeralContainer[]) =>
  ephemeralProblems(
    'spec',
    withPodDefaults({ containers: [{ name: 'main', image: 'app:1' }], ephemeralContainers }),
  ).map((problem) => problemText(problem).replace('spec.ephemeralContainers', ''))
const look = { name: 'look', image: 'busybox' }

test('a container that is added has a name of its own, a target that is there, and nothing others could rely on', async (t) => {
  t.same(wrong(look, { ...look, name: 'more', targetContainerName: 'main', tty: true, stdin: true }), [])
  t.match(wrong({ ...look, name: 'main' }, look, { ...look, image: '' }), [
    '[0].name: Duplicate value: "main"',
    '[2].name: Duplicate value: "look"',
    '[2].image: Required value',
  ])
  t.same(wrong({ ...look, targetContainerName: 'look' }), ['[0].targetContainerName: Not found: "look"'])
  const because = 'Forbidden: cannot be set for an Ephemeral Container'
  const lasting = {
    ports: [{ containerPort: 80 }],
    resources: { limits: { cpu: '1' } },
    readinessProbe: { tcpSocket: { port: 80 } },
  }
  t.same(wrong({ ...look, ...lasting }), [
    `[0].ports: ${because}`,
    `[0].resources: ${because}`,
    `[0].readinessProbe: ${because}`,
  ])
})

test('none is there when a pod begins', async (t) => {
  t.match(earlyProblems('spec', { containers: [], ephemeralContainers: [look] }).map(problemText), [
    /^spec\.ephemeralContainers: Forbidden: cannot be set on create/,
  ])
  t.same(earlyProblems('spec', { containers: [] }), [])
})
