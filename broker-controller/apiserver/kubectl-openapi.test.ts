import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

/** What kubectl does with the OpenAPI documents: explain, and the checks and patches of files. */

const pod = (line: string, image = 'busybox:1.36') => `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: pi-01
  ${line}
  volumes: [{name: data, emptyDir: {}}]
  containers: [{name: main, image: "${image}", ports: [{containerPort: 80}], volumeMounts: [{name: data, mountPath: /data}]}]
`

test('kubectl and the OpenAPI documents', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { kubectl } = api
  const ok = async (args: readonly string[], input = '') => {
    const ran = await kubectl(args, { input })
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.stderr}`)
    return ran
  }

  await t.test('explain prints kinds, fields and their types', async (t) => {
    const { stdout } = await ok(['explain', 'pods'])
    t.match(stdout, /KIND: +Pod\nVERSION: +v1\n/)
    t.match(stdout, /\n {2}spec\t<PodSpec>/)
    t.match(stdout, /\n {2}metadata\t<ObjectMeta>/)
    const spec = (await ok(['explain', 'pods.spec'])).stdout
    t.match(spec, /containers\t<\[\]Container> -required-/)
    t.match(spec, /overhead\t<map\[string\]Quantity>/)
    t.match(spec, /nodeSelector\t<map\[string\]string>/)
    t.match((await ok(['explain', 'node.status.conditions.status'])).stdout, /ENUM:/)
    t.match((await ok(['explain', 'pdb'])).stdout, /GROUP: +policy\nKIND: +PodDisruptionBudget/)
    t.match((await ok(['explain', 'clusterrolebindings.roleRef'])).stdout, 'apiGroup')
  })

  await t.test('explain --recursive goes down to the last field', async (t) => {
    const { stdout } = await ok(['explain', 'pods.spec.containers', '--recursive'])
    t.match(stdout, /\n {2}env\t<\[\]EnvVar>\n {4}name\t<string> -required-/)
    t.match(stdout, /port\t<IntOrString> -required-/)
    const unknown = await kubectl(['explain', 'pods.spec.foo'])
    t.equal(unknown.code, 1)
    t.match(unknown.stderr, 'field "foo" does not exist')
  })

  await t.test('a misspelt field is refused, or only warned of', async (t) => {
    const file = pod('restartPolcy: Always')
    const refused = await kubectl(['create', '-f', '-'], { input: file })
    t.equal(refused.code, 1)
    t.match(refused.stderr, 'strict decoding error: unknown field "spec.restartPolcy"')
    const applied = await kubectl(['apply', '--validate=strict', '-f', '-'], { input: file })
    t.equal(applied.code, 1)
    t.match(applied.stderr, 'unknown field "spec.restartPolcy"')
    const warned = await ok(['create', '--validate=warn', '--dry-run=server', '-f', '-'], file)
    t.match(warned.stderr, 'Warning: unknown field "spec.restartPolcy"')
  })

  await t.test('files are created, changed and applied by their schemas without a complaint', async (t) => {
    const dry = await ok(['create', '--dry-run=client', '-o', 'name', '-f', '-'], pod(''))
    t.equal(dry.stdout, 'pod/web\n')
    t.equal((await ok(['apply', '--validate=strict', '-f', '-'], pod(''))).stdout, 'pod/web created\n')
    const changed = await ok(['apply', '--validate=strict', '-f', '-'], pod('', 'busybox:1.37'))
    t.equal(changed.stdout, 'pod/web configured\n')
    t.equal(changed.stderr, '', 'the patch is computed from the document')
    const list = JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: ['a', 'b'].map((name) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name },
        data: { key: name },
      })),
    })
    t.equal((await ok(['apply', '-f', '-'], list)).stdout, 'configmap/a created\nconfigmap/b created\n')
    t.equal((await ok(['apply', '-f', '-'], list)).stdout, 'configmap/a unchanged\nconfigmap/b unchanged\n')
    t.match((await ok(['diff', '-f', '-'], list)).stdout, '')
  })

  await t.test('explain prints the same by the 2.0 document, which it asks for in protobuf', async (t) => {
    const { stdout } = await ok(['explain', '--output=plaintext-openapiv2', 'pods.spec'])
    t.match(stdout, /KIND: +Pod\nVERSION: +v1\n\nRESOURCE: spec <Object>/)
    t.match(stdout, /\n {3}containers\t<\[\]Object> -required-/)
    t.match(stdout, /\n {3}nodeSelector\t<map\[string\]string>/)
  })

  await t.test('the index leads to the documents', async (t) => {
    const index = JSON.parse((await ok(['get', '--raw', '/openapi/v3'])).stdout)
    t.match(index.paths['api/v1'].serverRelativeURL, /^\/openapi\/v3\/api\/v1\?hash=[0-9A-F]{32}$/)
    const v3 = JSON.parse((await ok(['get', '--raw', index.paths['api/v1'].serverRelativeURL])).stdout)
    t.equal(v3.openapi, '3.0.0')
  })
})
