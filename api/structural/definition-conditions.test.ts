import { test } from 'tap'
import type { CustomResourceDefinition } from './custom-resource-definition.ts'
import { approvalProblems, type DefinitionStatus, namedStatus } from './definition-conditions.ts'

const now = '2026-01-02T03:04:05Z'
const names = { plural: 'shops', singular: 'shop', kind: 'Shop', listKind: 'ShopList', shortNames: ['sh'] }

function aDefinition(status?: DefinitionStatus, group = 'example.com'): CustomResourceDefinition {
  const spec = { group, scope: 'Namespaced', names, versions: [] }
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {},
    spec,
  } as const
  return status === undefined ? definition : { ...definition, status }
}

test('the first definition of its names is established, and its status stays as it is then', async (t) => {
  const status = namedStatus(aDefinition(), [], now)
  t.match(status, {
    acceptedNames: names,
    conditions: [
      { type: 'NamesAccepted', status: 'True', lastTransitionTime: now },
      { type: 'Established', status: 'True', reason: 'InitialNamesAccepted' },
    ],
  })
  t.equal(namedStatus(aDefinition(status), [], '2027-01-01T00:00:00Z'), status)
})

test('a name that another definition has is not accepted, and the others are', async (t) => {
  const cases: readonly (readonly [taken: object, reason: string, name: string])[] = [
    [{ plural: 'shops' }, 'PluralConflict', 'shops'],
    [{ shortNames: ['shop'] }, 'SingularConflict', 'shop'],
    [{ plural: 'sh' }, 'ShortNamesConflict', 'sh'],
    [{ listKind: 'Shop' }, 'KindConflict', 'Shop'],
    [{ kind: 'ShopList' }, 'ListKindConflict', 'ShopList'],
  ]
  for (const [taken, reason, name] of cases) {
    const other = { status: { acceptedNames: { plural: '', kind: '', ...taken } } }
    const { conditions } = namedStatus(aDefinition(), [other], now)
    t.match(conditions, [
      { type: 'NamesAccepted', status: 'False', reason, message: `"${name}" is already in use` },
      { type: 'Established', status: 'False', reason: 'NotAccepted' },
    ])
  }
})

test('a kind that is established stays so when later names conflict', async (t) => {
  const established = namedStatus(aDefinition(), [], now)
  const wanted = {
    ...aDefinition(established),
    spec: { ...aDefinition().spec, names: { ...names, shortNames: ['st'] } },
  }
  const { acceptedNames, conditions } = namedStatus(
    wanted,
    [{ status: { acceptedNames: { plural: 'st', kind: 'St' } } }],
    now,
  )
  t.same(acceptedNames?.shortNames, ['sh'])
  t.match(conditions, [
    { status: 'False', reason: 'ShortNamesConflict' },
    { type: 'Established', status: 'True' },
  ])
})

test('groups of Kubernetes need an approval', async (t) => {
  const annotated = (value: string) => ({ annotations: { 'api-approved.kubernetes.io': value } })
  t.same(approvalProblems({}, 'example.com'), [])
  t.match(approvalProblems({}, 'x.k8s.io'), [{ reason: 'FieldValueRequired' }])
  t.match(approvalProblems(annotated('yes'), 'x.kubernetes.io'), [{ reason: 'FieldValueInvalid' }])
  t.same(approvalProblems(annotated('https://github.com/kubernetes/kubernetes/pull/1'), 'x.k8s.io'), [])
  t.same(approvalProblems(annotated('unapproved, experimental'), 'x.k8s.io'), [])
  const approved = { ...aDefinition(undefined, 'x.k8s.io'), metadata: annotated('https://example.com/1') }
  t.match(namedStatus(approved, [], now).conditions?.[2], { reason: 'ApprovedAnnotation', status: 'True' })
})
