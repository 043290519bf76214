/** Custom resources with the real kubectl, on a real controller that starts again in between. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { startController, temporaryFolder } from './support/fleet.ts'

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'shops.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'shops', kind: 'Shop', shortNames: ['sh'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        additionalPrinterColumns: [{ name: 'Owner', type: 'string', jsonPath: '.spec.owner' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            description: 'A shop for testing',
            properties: {
              spec: {
                type: 'object',
                required: ['owner'],
                'x-kubernetes-validations': [
                  {
                    rule: 'self.replicas <= 5 && self.replicas >= oldSelf.replicas',
                    messageExpression: "'from ' + string(oldSelf.replicas) + ' to 5'",
                    fieldPath: '.replicas',
                  },
                ],
                properties: {
                  owner: { type: 'string', description: 'Who runs it' },
                  replicas: { type: 'integer', default: 1 },
                },
              },
              status: { type: 'object', properties: { replicas: { type: 'integer' } } },
            },
          },
        },
      },
    ],
  },
}
const shop = {
  apiVersion: 'example.com/v1',
  kind: 'Shop',
  metadata: { name: 'corner', namespace: 'default' },
  spec: { owner: 'jane' },
}

test('kubectl defines a kind, explains it, and works with its objects', async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'controller')
  let controller = await startController(t, { dataDir })
  const file = async (name: string, content: object) => {
    const path = join(folder, name)
    await writeFile(path, JSON.stringify(content))
    return path
  }
  const definitionFile = await file('definition.json', definition)
  const shopFile = await file('shop.json', shop)
  const kubectl = (...args: readonly string[]) => controller.kubectl(...args)

  t.match(await kubectl('apply', '-f', definitionFile), /shops\.example\.com created/)
  await kubectl('wait', '--for=condition=Established', 'crd/shops.example.com', '--timeout=30s')
  t.match(await kubectl('api-resources', '--api-group=example.com'), /shops +sh +example\.com\/v1 +true +Shop/)
  t.match(await kubectl('explain', 'shop.spec'), /owner.*<string>.*-required-[\s\S]*Who runs it/)
  t.match(await kubectl('apply', '-f', shopFile), /shop\.example\.com\/corner created/)
  t.match(await kubectl('get', 'sh'), /NAME +OWNER\ncorner +jane/)
  const wrong = await file('wrong.json', { ...shop, spec: { owner: 'jane', size: 1 } })
  t.match(await controller.tryKubectl('apply', '-f', wrong), { code: 1, stderr: /unknown field "spec\.size"/ })
  const untyped = await file('untyped.json', { ...shop, spec: { owner: 1 } })
  t.match(await controller.tryKubectl('apply', '-f', untyped), {
    code: 1,
    stderr: /spec\.owner: Invalid value: "integer": spec\.owner in body must be of type string/,
  })
  await kubectl('scale', 'shop/corner', '--replicas=3')
  t.equal(await kubectl('get', 'shop', 'corner', '-o', 'jsonpath={.spec.replicas}'), '3')
  for (const replicas of [2, 6]) {
    t.match(await controller.tryKubectl('scale', 'shop/corner', `--replicas=${replicas}`), {
      code: 1,
      stderr: /spec\.replicas: Invalid value: "object": from 3 to 5/,
    })
  }
  t.match(await kubectl('apply', '--server-side', '--force-conflicts', '-f', shopFile), /serverside-applied/)

  await controller.program.stop()
  controller = await startController(t, { dataDir })
  t.equal(await kubectl('get', 'shop', 'corner', '-o', 'jsonpath={.spec.owner}'), 'jane', 'after a start')
  t.match(await kubectl('delete', 'crd', 'shops.example.com', '--timeout=60s'), /deleted/)
  // kubectl may have the kind in its cache of discovery.
  const gone = /the server (could not find the requested resource|doesn't have a resource type)/
  t.match(await controller.tryKubectl('get', 'shops'), { code: 1, stderr: gone })
})
