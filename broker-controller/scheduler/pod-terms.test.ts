import { test } from 'tap'
import type { PodAffinityTerm, TopologySpreadConstraint } from '../../api/pod.ts'
import { aPod } from '../../api/testing/builders.ts'
import { podTerms, termMatches } from './pod-terms.ts'

const zone = 'topology.kubernetes.io/zone'
const term = (more: Partial<PodAffinityTerm> = {}): PodAffinityTerm => ({ topologyKey: zone, ...more })
const web = { matchLabels: { app: 'web' } }

/** The one required term of a pod in `shop`. */
function required(wanted: PodAffinityTerm) {
  const pod = aPod({
    namespace: 'shop',
    spec: { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [wanted] } } },
  })
  const [found] = podTerms(pod).affinity
  if (found === undefined) throw new Error('The pod has no term')
  return found
}

test('a term means pods of these namespaces, or of those with these labels', async (t) => {
  const inside = aPod({ namespace: 'shop', labels: { app: 'web' } })
  const outside = aPod({ namespace: 'other', labels: { app: 'web' } })
  const labels = { team: 'a' }
  const cases: readonly (readonly [PodAffinityTerm, boolean, boolean])[] = [
    [term(), false, false],
    [term({ labelSelector: {} }), true, false],
    [term({ labelSelector: web }), true, false],
    [term({ labelSelector: { matchLabels: { app: 'db' } } }), false, false],
    [term({ labelSelector: { matchExpressions: [{ key: 'app', operator: 'In' }] } }), false, false],
    [term({ labelSelector: web, namespaces: ['other'] }), false, true],
    [term({ labelSelector: web, namespaces: ['shop', 'other'] }), true, true],
    [term({ labelSelector: web, namespaceSelector: {} }), true, true],
    [term({ labelSelector: web, namespaceSelector: { matchLabels: { team: 'a' } } }), false, true],
    [term({ labelSelector: web, namespaces: ['shop'], namespaceSelector: { matchLabels: { team: 'a' } } }), true, true],
  ]
  for (const [wanted, isInside, isOutside] of cases) {
    const found = required(wanted)
    t.equal(found.topologyKey, zone)
    t.same([termMatches(found, inside, {}), termMatches(found, outside, labels)], [isInside, isOutside], wanted)
  }
})

test('equal terms count once, and the weights of equal preferences are added', async (t) => {
  const preferred = (weight: number, app: string) => ({
    weight,
    podAffinityTerm: term({ labelSelector: { matchLabels: { app } } }),
  })
  const pod = aPod({
    spec: {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [term({ labelSelector: web }), term({ labelSelector: web })],
          preferredDuringSchedulingIgnoredDuringExecution: [preferred(3, 'a'), preferred(4, 'a'), preferred(5, 'b')],
        },
        podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [preferred(7, 'a')] },
      },
    },
  })
  const { affinity, antiAffinity, preferred: weighted } = podTerms(pod)
  t.same([affinity.length, antiAffinity.length], [1, 0])
  t.same(
    weighted.map(({ weight }) => weight),
    [7, 5, -7],
    'those of the anti-affinity push away',
  )
  t.equal(podTerms(pod), podTerms(pod), 'they are read once')
})

test('constraints of spread are hard or soft, and count by the policies of nodes', async (t) => {
  const constraint = (more: Partial<TopologySpreadConstraint>): TopologySpreadConstraint => ({
    ...{ topologyKey: zone, maxSkew: 2, whenUnsatisfiable: 'DoNotSchedule', labelSelector: web },
    ...more,
  })
  const pod = aPod({
    labels: { app: 'web', 'pod-template-hash': 'x1' },
    spec: {
      topologySpreadConstraints: [
        constraint({ matchLabelKeys: ['pod-template-hash', 'toString', 'absent'] }),
        constraint({
          ...{ whenUnsatisfiable: 'ScheduleAnyway', minDomains: 3 },
          ...{ nodeAffinityPolicy: 'Ignore', nodeTaintsPolicy: 'Honor' },
        }),
      ],
    },
  })
  const { hardSpread, softSpread } = podTerms(pod)
  t.match(hardSpread, [{ maxSkew: 2, minDomains: 1, honorsAffinity: true, honorsTaints: false }])
  t.match(softSpread, [{ maxSkew: 2, minDomains: 3, honorsAffinity: false, honorsTaints: true }])
  const counts = (labels: { readonly [key: string]: string }) => hardSpread[0]?.selectsPods?.(labels)
  t.equal(counts({ app: 'web', 'pod-template-hash': 'x1' }), true)
  t.equal(counts({ app: 'web', 'pod-template-hash': 'x2' }), false, 'pods of another revision do not count')
  t.equal(softSpread[0]?.selectsPods?.({ app: 'web' }), true)
})

test('a selector with many values chooses as one with few does', async (t) => {
  const values = Array.from({ length: 200 }, (_, at) => `app-${at}`)
  const { selectsPods } = required(
    term({ labelSelector: { matchExpressions: [{ key: 'app', operator: 'In', values }] } }),
  )
  t.same(
    [selectsPods?.({ app: 'app-199' }), selectsPods?.({ app: 'app-200' }), selectsPods?.({})],
    [true, false, false],
  )
})
