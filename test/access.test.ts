/** People and programs that use the API of a real controller: their certificates, roles and tokens, from the first day on. */
import { X509Certificate } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { startController, temporaryFolder } from './support/fleet.ts'
import { eventually } from './support/wait.ts'

test('users and service accounts of a fleet', async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'controller')
  let controller = await startController(t, { dataDir })
  const { kubectl } = controller
  const command = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await controller.command(...args, '--data-dir', dataDir)
    return { code, output: `${stdout}${stderr}` }
  }
  const file = join(folder, 'eve.kubeconfig')
  const eve = (...args: readonly string[]) => controller.tryKubectl('--kubeconfig', file, ...args)

  await t.test(
    'a fresh controller has the default roles, and in each namespace an account and certificates',
    async (t) => {
      t.match(
        await kubectl('get', 'clusterrolebinding', 'cluster-admin', '-o', 'wide'),
        /ClusterRole\/cluster-admin .* system:masters/,
      )
      await eventually('view is aggregated', async () =>
        (await kubectl('get', 'clusterrole', 'view', '-o', 'jsonpath={.rules}')).includes('configmaps'),
      )
      await kubectl('create', 'namespace', 'shop')
      for (const namespace of ['default', 'kube-system', 'shop']) {
        await eventually(namespace, async () => {
          const { code } = await controller.tryKubectl('get', 'serviceaccount', 'default', '-n', namespace)
          return code === 0
        })
      }
      const pem = await eventually('the certificates', async () => {
        const args = ['get', 'configmap', 'kube-root-ca.crt', '-n', 'shop', '-o', 'jsonpath={.data.ca\\.crt}']
        return (await controller.tryKubectl(...args)).stdout
      })
      t.ok(new X509Certificate(pem).ca)
      await kubectl('delete', 'namespace', 'shop', '--timeout=30s')
    },
  )

  await t.test('a person gets a kubeconfig, and the rights of the roles bound to it', async (t) => {
    const made = await command(
      'kubeconfig',
      '--user',
      'eve',
      '--group',
      'ops',
      '--group',
      'dev',
      '--ttl',
      '1h',
      '--output',
      file,
    )
    t.match(made, { code: 0, output: `The kubeconfig of eve is ${file}.` })
    t.equal((await stat(file)).mode & 0o777, 0o600)
    t.match((await eve('auth', 'whoami')).stdout, /Username +eve\nGroups +\[ops dev system:authenticated\]/)
    t.match(await eve('get', 'pods'), { code: 1, stderr: 'User "eve" cannot list resource "pods"' })
    await kubectl('create', 'rolebinding', 'ops', '--clusterrole=view', '--group=ops')
    t.equal((await eve('get', 'pods')).code, 0)
    t.equal(await kubectl('get', 'csr', '-o', 'name'), '', 'the request is removed')
  })

  await t.test('what no person may be is refused', async (t) => {
    const asked = (...args: readonly string[]) => command('kubeconfig', ...args)
    t.match(await asked('--user', 'eve', '--group', 'system:masters'), {
      code: 1,
      output: /system:masters group is not allowed/,
    })
    t.match(await asked('--user', 'system:node:pi-1', '--group', 'ops'), { code: 1, output: /is that of a node/ })
    t.match(await asked('--group', 'ops'), { output: /Name the user with --user/ })
    t.match(await asked('--user', 'eve', '--ttl', '1m'), { output: /use a duration of 10m or more/ })
  })

  await t.test('a person’s certificates are revoked, and there may be new ones', async (t) => {
    t.match(await command('certificates', 'revoke', 'eve', '--user'), { code: 0, output: /kubeconfig --user eve/ })
    await eventually('it is cut off', async () => /Unauthorized|revoked/.test((await eve('get', 'pods')).stderr))
    // Certificates count in whole seconds: one of the second of the revocation would be revoked with the others.
    await eventually('another one works', async () => {
      await command('kubeconfig', '--user', 'eve', '--group', 'ops', '--output', file)
      return (await eve('get', 'pods')).code === 0
    })
  })

  await t.test('a token is valid after a restart, and while its key is trusted', async (t) => {
    await kubectl('create', 'serviceaccount', 'ci')
    await kubectl('create', 'rolebinding', 'ci', '--clusterrole=view', '--serviceaccount=default:ci')
    const token = (await kubectl('create', 'token', 'ci')).trim()
    const anybody = join(folder, 'anybody.kubeconfig')
    await writeFile(anybody, 'apiVersion: v1\nkind: Config\n', { mode: 0o600 })
    const withToken = async (given: string) => {
      const args = ['--server', controller.apiUrl, '--token', given, '--insecure-skip-tls-verify', 'get', 'pods']
      return (await controller.tryKubectl('--kubeconfig', anybody, ...args)).code
    }
    t.equal(await withToken(token), 0)
    const key = join(dataDir, 'authority', 'service-account.key')
    t.equal((await stat(key)).mode & 0o777, 0o600)
    const ports = { apiPort: Number(new URL(controller.apiUrl).port), mqttPort: controller.mqttPort }
    await controller.program.stop()
    controller = await startController(t, { dataDir, ...ports })
    t.equal(await withToken(token), 0, 'after a restart')

    const before = await readFile(key, 'utf8')
    t.match(await command('service-account-key', 'rotate'), { code: 0, output: /signs now/ })
    t.not(await readFile(key, 'utf8'), before)
    t.equal(await withToken(token), 0, 'the key before is still trusted')
    const second = (await controller.kubectl('create', 'token', 'ci')).trim()
    t.match(await command('service-account-key'), { code: 0, output: /signs\n.* trusted until "finish"/ })
    t.match(await command('service-account-key', 'rotate'), { code: 1, output: /the previous key is still trusted/ })
    t.match(await command('service-account-key', 'finish'), { code: 0, output: /its tokens are invalid/ })
    t.equal(await withToken(token), 1)
    t.equal(await withToken(second), 0)
  })
  await controller.program.stop()
})
