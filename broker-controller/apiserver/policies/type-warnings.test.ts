import { test } from 'tap'
import type { NamedRule } from '../../../api/admission/match-resources.ts'
import type { AdmissionPolicySpec } from '../../../api/admission/validating-admission-policy.ts'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { turnsAboveBudget } from '../../../daemon/testing/turn-budget.ts'
import { builtInKinds } from '../../assembly/control-plane.ts'
import { inPieces } from '../handlers/turns.ts'
import { customKind } from '../kinds/custom/custom-kind.ts'
import { type KnownKinds, kindsToCheck, typeWarnings } from './type-warnings.ts'

const rule = (group: string, version: string, ...resources: readonly string[]): NamedRule => ({
  operations: ['CREATE'],
  apiGroups: [group],
  apiVersions: [version],
  resources: [...resources],
})
const deployments = rule('apps', 'v1', 'deployments')

const cronTab = (schema: JSONSchemaProps) => {
  const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }
  const names = { plural: 'crontabs', kind: 'CronTab' }
  const definition = {
    metadata: { name: 'crontabs.stable.example.com', uid: 'u', generation: 1 },
    spec: { group: 'stable.example.com', names, scope: 'Namespaced' as const, versions: [version] },
  }
  return customKind(definition, version, new AbortController().signal)
}

/** The built-in kinds, and CronTabs of this schema. */
const withCronTabs = (schema: JSONSchemaProps): KnownKinds => {
  const kind = cronTab(schema)
  return {
    at: (group, version, plural) =>
      plural === 'crontabs' && group === kind.group ? kind : builtInKinds.at(group, version, plural),
    ofKind: (apiVersion, name) =>
      apiVersion === 'stable.example.com/v1' && name === kind.kind ? kind : builtInKinds.ofKind(apiVersion, name),
  }
}

function warningsOf(spec: AdmissionPolicySpec, kinds: KnownKinds = builtInKinds) {
  const work = typeWarnings({ matchConstraints: { resourceRules: [deployments] }, ...spec }, kinds)
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

const warningOf = (expression: string, more: AdmissionPolicySpec = {}, kinds?: KnownKinds) =>
  warningsOf({ validations: [{ expression }], ...more }, kinds)[0]?.warning

test('an expression that does not fit the schema of a kind is warned of, with the field and the words of the compiler', async (t) => {
  const found = warningsOf({
    validations: [
      { expression: 'object.spec.replicas > 1' },
      {
        expression: "object.spec.replicas > '1'",
        messageExpression: "'wants replicas > 1, got ' + object.spec.replicas",
      },
      { expression: 'oldObject.spec.maxRetries < 10' },
    ],
  })
  t.same(found, [
    {
      fieldRef: 'spec.validations[1].expression',
      warning:
        "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n" +
        " | object.spec.replicas > '1'\n | .....................^\n",
    },
    {
      fieldRef: 'spec.validations[1].messageExpression',
      warning:
        "apps/v1, Kind=Deployment: ERROR: <input>:1:28: found no matching overload for '_+_' applied to '(string, int)'\n" +
        " | 'wants replicas > 1, got ' + object.spec.replicas\n | ...........................^\n",
    },
    {
      fieldRef: 'spec.validations[2].expression',
      warning:
        "apps/v1, Kind=Deployment: ERROR: <input>:1:15: undefined field 'maxRetries'\n" +
        ' | oldObject.spec.maxRetries < 10\n | ..............^\n',
    },
  ])
})

test('each field of a built-in kind has the type of its schema', async (t) => {
  for (const expression of [
    "object.metadata.labels['app'] == 'a' && object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')",
    "object.metadata.managedFields.all(one, one.operation == 'Apply')",
    'object.spec.template.spec.containers.all(one, one.image.startsWith("a/") && one.ports.all(p, p.containerPort > 1))',
    'object.spec.strategy.rollingUpdate.maxSurge == 1 || object.spec.strategy.rollingUpdate.maxSurge == "25%"',
    "object.spec.template.spec.containers.all(c, quantity(c.resources.limits['memory']).isLessThan(quantity('1Gi')))",
    'has(object.status.conditions) && object.status.conditions[0].lastTransitionTime.getFullYear() > 2000',
    'object == oldObject',
    "authorizer.requestResource.check('get').allowed() && request.name == 'a' && namespaceObject.metadata.name == 'b'",
  ]) {
    t.equal(warningOf(expression), undefined, expression)
  }
  t.match(
    warningOf('object.metadata.labels == 1'),
    /no matching overload for '_==_' applied to '\(map\(string, string\), int\)'/,
  )
  t.match(warningOf('object.metadata.nam == "a"'), /undefined field 'nam'/)
  t.match(warningOf('object.spec == 1'), /applied to '\(Deployment\.spec, int\)'/)
  t.match(
    warningOf('object.spec.template.spec.containers == ["a"]'),
    /list\(Deployment\.spec\.template\.spec\.containers\.@idx\)/,
  )
})

test('what has any shape in a built-in kind may have any type', async (t) => {
  const of = (...given: Parameters<typeof rule>) => ({ matchConstraints: { resourceRules: [rule(...given)] } })
  t.equal(warningOf('object.data.anything > 1', of('apps', 'v1', 'controllerrevisions')), undefined)
  t.equal(
    warningOf(
      "object.spec.versions.all(v, v.schema.openAPIV3Schema.properties['spec'].type == 'object')",
      of('apiextensions.k8s.io', 'v1', 'customresourcedefinitions'),
    ),
    undefined,
  )
})

test('an expression is checked for each kind that the rules name, and each that it does not fit is named', async (t) => {
  const matchConstraints = {
    resourceRules: [rule('', 'v1', 'pods'), { ...deployments, resources: ['statefulsets', 'deployments'] }],
  }
  t.equal(
    warningOf('object.spec.serviceName == "a"', { matchConstraints }),
    ['/v1, Kind=Pod', 'apps/v1, Kind=Deployment']
      .map(
        (kind) =>
          `${kind}: ERROR: <input>:1:12: undefined field 'serviceName'\n | object.spec.serviceName == "a"\n | ...........^\n`,
      )
      .join('\n'),
  )
})

test('a custom kind is checked by the schema of its definition, with the metadata that all objects have', async (t) => {
  const integer = { type: 'integer' }
  const kinds = withCronTabs({
    type: 'object',
    properties: {
      spec: { type: 'object', properties: { replicas: integer, 'cron-spec': { type: 'string' } } },
      template: {
        type: 'object',
        'x-kubernetes-embedded-resource': true,
        'x-kubernetes-preserve-unknown-fields': true,
      },
    },
  })
  const matchConstraints = { resourceRules: [rule('stable.example.com', 'v1', 'crontabs')] }
  const warning = (expression: string) => warningOf(expression, { matchConstraints }, kinds)
  t.equal(
    warning("object.spec.replicas > 1 && object.spec.cron__dash__spec == '' && object.kind == 'CronTab'"),
    undefined,
  )
  t.equal(warning("object.metadata.labels['a'] == object.template.metadata.annotations['b']"), undefined)
  t.match(warning("object.spec.replicas > '1'"), /^stable\.example\.com\/v1, Kind=CronTab: ERROR: .*'\(int, string\)'/)
  t.match(warning('object.spec.maxRetries < 10'), /undefined field 'maxRetries'/)
})

test('parameters have the type of their kind, or any where it is not served', async (t) => {
  const limits = { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' } }
  t.equal(warningOf("params == null || params.data['a'] == 'b'", limits), undefined)
  t.match(warningOf('params.spec == 1', limits), /undefined field 'spec'/)
  t.equal(warningOf('params.spec == 1', { paramKind: { apiVersion: 'a.example.com/v1', kind: 'Limit' } }), undefined)
})

test('a variable has the type of its expression, or any where that has problems, which are not warned of', async (t) => {
  const variables = [
    { name: 'replicas', expression: 'object.spec.replicas' },
    { name: 'isOdd', expression: 'variables.replicas % 2 == 1' },
    { name: 'wrong', expression: 'object.spec.none' },
  ]
  t.equal(warningOf('variables.isOdd || variables.wrong == 3', { variables }), undefined)
  t.match(warningOf("variables.replicas == 'a'", { variables }), /'_==_' applied to '\(int, string\)'/)
  t.match(warningOf('variables.none', { variables }), /undefined field 'none'/)
})

test('kinds are checked that rules name one by one: at most ten, in order of group, version and kind', async (t) => {
  const names = (...resourceRules: readonly NamedRule[]) =>
    kindsToCheck({ resourceRules }, builtInKinds).map(({ group, kind }) => `${group} ${kind}`)
  t.same(names(), [])
  t.same(names(deployments, rule('', 'v1', 'pods'), { ...deployments, apiVersions: ['*'] }), [
    ' Pod',
    'apps Deployment',
  ])
  t.same(names(rule('apps', 'v1', '*')), [])
  t.same(names(rule('*', 'v1', 'deployments')), [])
  t.same(names(rule('apps', 'v1', 'deployments/scale', '*/scale', 'daemonsets', 'none')), ['apps DaemonSet'])
  t.same(names({ ...deployments, apiGroups: ['', 'apps'] }), ['apps Deployment'])
  const core = ['pods', 'nodes', 'services', 'secrets', 'events', 'endpoints', 'configmaps', 'namespaces']
  t.equal(names(rule('', 'v1', ...core), rule('apps', 'v1', 'deployments', 'daemonsets', 'statefulsets')).length, 10)
})

test('warnings are bounded, however many expressions do not fit', async (t) => {
  const validations = Array.from({ length: 500 }, () => ({ expression: `object.${'a'.repeat(300)} && object.b` }))
  const found = warningsOf({ validations })
  const characters = found.reduce((sum, { warning }) => sum + warning.length, 0)
  t.ok(characters > 60_000 && characters < 70_000, `${characters}`)
  const long = warningOf(Array.from({ length: 200 }, (_, index) => `object.a${index}`).join(' &&\n'), {
    matchConstraints: {
      resourceRules: [rule('apps', 'v1', 'deployments', 'daemonsets', 'statefulsets', 'replicasets')],
    },
  })
  t.ok((long?.length ?? 0) <= 4_096, `${long?.length}`)
})

test('the costliest policy holds the event loop for a short time only', async (t) => {
  const names = ['deployments', 'daemonsets', 'statefulsets', 'replicasets']
  const resourceRules = [rule('apps', 'v1', ...names), rule('', 'v1', 'pods', 'podtemplates', 'replicationcontrollers')]
  const text = 'object.spec.template.spec.containers.all(c, c.image == "a" || c.env.exists(e, e.value == "b")) && '
  const expression = `${text.repeat(Math.floor(8_000 / text.length))}true`
  const spec = { matchConstraints: { resourceRules }, validations: [{ expression }, { expression }] }
  const fields = Object.fromEntries(Array.from({ length: 4_000 }, (_, index) => [`field${index}`, { type: 'string' }]))
  const wide = withCronTabs({ type: 'object', properties: { spec: { type: 'object', properties: fields } } })
  const custom = { resourceRules: [rule('stable.example.com', 'v1', 'crontabs')] }
  const { above } = await turnsAboveBudget([
    {
      what: 'long expressions',
      bytes: expression.length,
      act: () => inPieces(typeWarnings(spec, builtInKinds), clock),
    },
    {
      what: 'a wide schema',
      bytes: 0,
      act: () =>
        inPieces(
          typeWarnings({ matchConstraints: custom, validations: [{ expression: 'object.spec.no' }] }, wide),
          clock,
        ),
    },
  ])
  t.same(above, [])
})
