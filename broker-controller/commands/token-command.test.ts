import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { decodeToken, encodeToken } from '../../api/node/bootstrap-token.ts'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { openSecretsDoor } from '../testing/secrets-door.ts'
import { tokenCommand } from './token-command.ts'

async function aFleet(t: Test, habits: Parameters<typeof openSecretsDoor>[1] = {}) {
  const dataDir = testFolder(t)
  const door = await openSecretsDoor(join(dataDir, 'authority'), habits)
  t.teardown(() => door.close())
  await writeFile(join(dataDir, 'kubeconfig'), door.kubeconfig)
  const type = async (...argv: readonly string[]) => {
    let [stdout, stderr] = ['', '']
    const code = await tokenCommand(['--data-dir', dataDir, ...argv], {
      stdout: (text) => {
        stdout += text
      },
      stderr: (text) => {
        stderr += text
      },
      signal: new AbortController().signal,
      randomBytes,
    })
    return { code, stdout, stderr }
  }
  const tokens = () => [...door.secrets.values()].map(decodeToken)
  return { door, dataDir, type, tokens }
}

test('a token is made, kept as Kubernetes keeps it, and printed alone', async (t) => {
  const { type, tokens } = await aFleet(t)
  const { code, stdout, stderr } = await type('create', '--description', 'the kitchen')
  t.equal(code, 0, stderr)
  t.match(stdout, /^[a-z0-9]{6}\.[a-z0-9]{16}\n$/)
  const [token] = tokens()
  t.equal(`${token?.id}.${token?.secret}\n`, stdout)
  t.match(token, {
    description: 'the kitchen',
    usages: ['authentication', 'signing'],
    groups: ['system:bootstrappers:kubeadm:default-node-token'],
  })
  const leftMs = Date.parse(token?.expiration ?? '') - Date.now()
  t.ok(leftMs > 24 * 3600_000 - 60_000 && leftMs <= 24 * 3600_000, 'a day is left')
})

test('the join line has the public address and the hash of the authority', async (t) => {
  const { type, door } = await aFleet(t)
  const { stdout, stderr } = await type('create', '--print-join-command', '--ttl', '2h')
  const [, token] = /--token (\S+)/.exec(stdout) ?? []
  const terms = `--token ${token} --ca-hash ${door.caHash}`
  t.match(stderr, `scripts/quickstart.sh --join https://fleet.example:6443 ${terms}\n`, 'and one for a clone beside it')
  t.equal(stdout, `bramble-agent join https://fleet.example:6443 --token ${token} --ca-hash ${door.caHash}\n`)
})

test('expiry is counted on the clock of the API, which will judge it', async (t) => {
  const { type, tokens } = await aFleet(t, { skewMs: -10 * 24 * 3600_000 })
  await type('create', '--ttl', '1h')
  t.ok(Date.parse(tokens()[0]?.expiration ?? '') < Date.now() - 9 * 24 * 3600_000)
})

test('tokens are listed with what is left of them, and deleted by their id', async (t) => {
  const { type, tokens, door } = await aFleet(t)
  await type('create', '--ttl', '0', '--description', 'for ever')
  const old = { id: 'oldone', secret: '0123456789abcdef', expiration: '2020-01-01T00:00:00Z', usages: [], groups: [] }
  door.secrets.set('bootstrap-token-oldone', encodeToken(old))
  door.secrets.set('other', { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'other' }, type: 'Opaque' })
  const { stdout } = await type('list')
  const lines = stdout.trimEnd().split('\n')
  t.match(lines[0], /^TOKEN +TTL +EXPIRES +USAGES +DESCRIPTION$/)
  t.match(lines[1], /^[a-z0-9.]{23} +<forever> +<never> +authentication,signing +for ever$/)
  t.match(lines[2], /^oldone\.0123456789abcdef +<expired> +2020-01-01T00:00:00Z +<none> +<none>$/)
  t.equal(lines.length, 3)

  t.match(await type('delete', 'oldone'), { code: 0, stdout: 'Token oldone deleted\n' })
  t.match(await type('delete', 'oldone.0123456789abcdef'), { code: 1, stderr: 'There is no token oldone\n' })
  t.equal(tokens().filter((token) => token !== undefined).length, 1)
})

test('what was typed wrongly is named', async (t) => {
  const { type, door } = await aFleet(t)
  for (const [argv, expected] of [
    [[], /^Missing argument: use create, list, delete ID\./],
    [['make'], /^Unexpected "make": use create, list, delete ID\./],
    [['create', 'abcdef'], /^Unexpected "create abcdef": use create\./],
    [['create', '--ttl', '24'], /^Invalid value "24" for --ttl: use a duration like 24h or 1h30m, or 0\./],
    [['create', '--ttl=-1h'], /^Invalid value "-1h"/],
    [['delete'], /^Unexpected "delete": use delete ID\./],
    [['delete', 'ABC'], /^Invalid value "ABC" for ID: use the six characters before the dot\./],
    [['list', '--colour'], /^Unknown option '--colour'.*\nTry 'bramble-controller token --help'\.\n$/],
  ] as const) {
    const { code, stderr } = await type(...argv)
    t.equal(code, 64)
    t.match(stderr, expected)
  }
  t.equal(door.secrets.size, 0)
  t.match(await type('--help'), { code: 0, stdout: /Usage: bramble-controller token create/ })
})

test('what the API or the kubeconfig does not allow is reported once, with the reason', async (t) => {
  const { type, door, dataDir } = await aFleet(t)
  const at = (name: string) => join(dataDir, name)
  t.match(await type('list', '--data-dir', at('none')), {
    code: 1,
    stderr: /Cannot use kubeconfig .*none\/kubeconfig: ENOENT/,
  })
  await writeFile(at('stranger'), door.strangerKubeconfig)
  t.match(await type('create', '--kubeconfig', at('stranger')), {
    code: 1,
    stderr: 'Cannot create the token: Unauthorized (status 401)\n',
  })
  await writeFile(at('wrong'), 'clusters: []\ncurrent-context: x\ncontexts: []\n')
  t.match(await type('list', '--kubeconfig', at('wrong')), { stderr: /current-context "x" does not exist/ })
  await writeFile(at('empty'), '')
  t.match(await type('list', '--kubeconfig', at('empty')), { code: 1, stderr: /Cannot use kubeconfig/ })
  await writeFile(at('gone'), door.kubeconfig.replace(/127.0.0.1:\d+/, '127.0.0.1:1'))
  t.match(await type('list', '--kubeconfig', at('gone')), {
    code: 1,
    stderr: /Cannot GET https:\/\/127.0.0.1:1\/.*ECONNREFUSED/,
  })
})
