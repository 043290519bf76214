/** Admission policies with the real kubectl, on a real controller that starts again in between; their parameters are a custom kind. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { startController, temporaryFolder } from './support/fleet.ts'

const apiVersion = 'admissionregistration.k8s.io/v1'

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'limits.rules.example.com' },
  spec: {
    group: 'rules.example.com',
    scope: 'Namespaced',
    names: { plural: 'limits', kind: 'Limit' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { most: { type: 'integer' } } } },
      },
    ],
  },
}
const limit = {
  apiVersion: 'rules.example.com/v1',
  kind: 'Limit',
  metadata: { name: 'few', namespace: 'default' },
  most: 2,
}
const policy = {
  apiVersion,
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'replicas' },
  spec: {
    paramKind: { apiVersion: 'rules.example.com/v1', kind: 'Limit' },
    matchConstraints: {
      resourceRules: [
        { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['CREATE', 'UPDATE'] },
        { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments/scale'], operations: ['UPDATE'] },
      ],
    },
    variables: [{ name: 'replicas', expression: 'object.spec.replicas' }],
    validations: [
      {
        expression: 'variables.replicas <= params.most',
        messageExpression: "'at most ' + string(params.most) + ' replicas'",
      },
    ],
  },
}
const binding = (validationActions: readonly string[]) => ({
  apiVersion,
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: 'everywhere' },
  spec: {
    policyName: 'replicas',
    paramRef: { name: 'few', namespace: 'default', parameterNotFoundAction: 'Deny' },
    validationActions,
  },
})

test('kubectl binds a policy with parameters of a custom kind, and what it denies is not written', async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'controller')
  let controller = await startController(t, { dataDir })
  const kubectl = (...args: readonly string[]) => controller.kubectl(...args)
  const apply = async (name: string, content: object) => {
    const path = join(folder, `${name}.json`)
    await writeFile(path, JSON.stringify(content))
    return kubectl('apply', '-f', path)
  }
  await apply('definition', definition)
  await kubectl('wait', '--for=condition=Established', 'crd/limits.rules.example.com', '--timeout=30s')
  await apply('limit', limit)
  t.match(await apply('policy', policy), /validatingadmissionpolicy.*\/replicas created/)
  await kubectl('wait', '--for=jsonpath={.status.observedGeneration}=1', 'validatingadmissionpolicy/replicas')
  t.match(await kubectl('get', 'validatingadmissionpolicies'), /replicas +1 +rules\.example\.com\/v1\/Limit/)
  const create = ['create', 'deployment', 'web', '--image=web', '--replicas=3']
  t.match(await kubectl(...create, '--dry-run=server'), /created \(server dry run\)/, 'it is not bound')

  await apply('binding', binding(['Deny']))
  t.match(await kubectl('get', 'validatingadmissionpolicybindings'), /everywhere +replicas +default\/few/)
  const denial = /ValidatingAdmissionPolicy 'replicas' with binding 'everywhere' denied request: at most 2 replicas/
  t.match(await controller.tryKubectl(...create), { code: 1, stderr: denial })
  t.match(await kubectl('create', 'deployment', 'web', '--image=web', '--replicas=2'), /created/)
  t.match(await controller.tryKubectl('scale', 'deployment/web', '--replicas=3'), { code: 1, stderr: denial })
  await apply('limit', { ...limit, most: 3 })
  t.match(await kubectl('scale', 'deployment/web', '--replicas=3'), /scaled/)

  await controller.program.stop()
  controller = await startController(t, { dataDir })
  const four = ['scale', 'deployment/web', '--replicas=4']
  t.match(await controller.tryKubectl(...four), { code: 1, stderr: /at most 3 replicas/ }, 'after a start')
  await apply('binding', binding(['Warn']))
  t.match(await controller.tryKubectl(...four), {
    code: 0,
    stderr: /Warning: Validation failed for ValidatingAdmissionPolicy 'replicas' with binding 'everywhere': at most 3/,
  })
  t.match(await kubectl('delete', 'validatingadmissionpolicybinding,validatingadmissionpolicy', '--all'), /deleted/)
})
