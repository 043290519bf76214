import { execFile } from 'node:child_process'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { caHash } from './ca-hash.ts'
import { certsCommand } from './cli.ts'
import { openssl } from './testing/openssl.ts'

const run = promisify(execFile)

async function type(...argv: readonly string[]) {
  let [stdout, stderr] = ['', '']
  const code = await certsCommand(argv, {
    stdout: (text) => {
      stdout += text
    },
    stderr: (text) => {
      stderr += text
    },
    nowMs: Date.now,
  })
  return { code, stdout, stderr }
}

test('an authority, certificates of every kind, and a look at them', async (t) => {
  const folder = testFolder(t)
  const [ca, out] = [join(folder, 'ca'), join(folder, 'out')]
  const to = ['--authority', ca, '--out', out]
  t.match(await type('authority', ca), { code: 0, stdout: /^A new authority was made in .*subject +CN=bramble-ca/s })
  t.match(await type('authority', ca), { code: 0, stdout: /^There is an authority in / })
  const certificate = await readFile(join(ca, 'ca.crt'), 'utf8')
  t.match(await type('hash', ca), { code: 0, stdout: `${caHash(certificate)}\n` })

  t.match(await type('issue', 'server', 'fleet.example', '10.0.0.1', '::1', ...to), { code: 0, stderr: '' })
  t.match(await type('issue', 'node', 'pi-1', '--days', '2', ...to), { code: 0, stderr: '' })
  t.match(await type('issue', 'admin', '--server', 'https://fleet.example:6443', ...to), { code: 0, stderr: '' })
  t.same((await readdir(out)).sort(), [
    'admin.crt',
    'admin.key',
    'ca.crt',
    'kubeconfig',
    'pi-1.crt',
    'pi-1.key',
    'server.crt',
    'server.key',
  ])
  for (const name of ['admin.key', 'kubeconfig', 'pi-1.key', 'server.key'])
    t.equal((await stat(join(out, name))).mode & 0o777, 0o600, name)
  for (const name of ['admin', 'pi-1', 'server'])
    t.match(await openssl('verify', '-CAfile', join(out, 'ca.crt'), join(out, `${name}.crt`)), 'OK')

  const { stdout } = await type('show', out)
  t.match(
    stdout,
    /pi-1.crt\n +subject +O=system:nodes, CN=system:node:pi-1\n +issuer +CN=bramble-ca\n +valid .*\(1 day left\)\n +for +clients/,
  )
  t.match(stdout, /names +DNS:fleet.example, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1\n/)
  t.equal(stdout.match(/server\.crt\n/g)?.length, 2, 'the server’s chain is shown whole')

  await writeFile(
    join(folder, 'identity.json'),
    JSON.stringify({ certificate: await readFile(join(out, 'pi-1.crt'), 'utf8') }),
  )
  t.match(await type('show', join(folder, 'identity.json')), { code: 0, stdout: /CN=system:node:pi-1/ })

  const key = await readFile(join(out, 'server.key'), 'utf8')
  t.match(await type('issue', 'server', 'x', ...to), {
    code: 1,
    stderr: /server.key exists; --force replaces it/,
  })
  t.equal(await readFile(join(out, 'server.key'), 'utf8'), key)
  t.equal((await type('issue', 'server', 'x', '--force', ...to)).code, 0)
  t.not(await readFile(join(out, 'server.key'), 'utf8'), key)
})

test('it is a program too', async (t) => {
  const program = fileURLToPath(new URL('./cli.js', import.meta.url))
  t.match((await run(process.execPath, [program, '--help'])).stdout, /^Usage: bramble-certs/)
  await t.rejects(run(process.execPath, [program, 'show', '/no/such/file']), {
    code: 1,
    stderr: /^Cannot read \/no\/such\/file: ENOENT/,
  })
})

test('help, version and completion come from the table of commands', async (t) => {
  const help = await type('issue', '--help')
  t.match(help, { code: 0, stdout: /--days N +lifetime in days \(1 to 99999; default: a year; for a server five\)/ })
  t.match(await type('help'), { code: 0, stdout: /^Usage: bramble-certs COMMAND.*\n {2}show +show subject/s })
  t.match(await type('--version'), { code: 0, stdout: /^bramble-certs \d/ })
  t.match(await type('completion', 'bash'), { code: 0, stdout: /complete -o default -F _bramble_certs bramble-certs/ })
})

test('a failure is reported with its cause', async (t) => {
  const folder = testFolder(t, {
    'empty.crt': '',
    'bad.crt': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  })
  const to = ['--authority', join(folder, 'none'), '--out', join(folder, 'out')]
  for (const [argv, code, expected] of [
    [[], 64, /Missing argument: use show, hash, authority, issue, completion/],
    [['frobnicate'], 64, /Unexpected "frobnicate"/],
    [['show'], 64, /Missing argument: use FILE\|FOLDER.\nTry 'bramble-certs show --help'/],
    [['show', 'a', 'b'], 64, /Unexpected "a b"/],
    [['show', '--colour', 'x'], 64, /--colour/],
    [['issue', 'server', 'x'], 64, /--authority FOLDER and --out FOLDER are required/],
    [['issue', 'king', ...to], 64, /server NAME..., admin, node NAME/],
    [['issue', 'server', ...to], 64, /Unexpected "server": use server NAME\.\.\./],
    [['issue', 'node', 'No_good', ...to], 64, /Invalid node name "No_good"/],
    [['issue', 'node', ...to], 64, /use node NAME/],
    [['issue', 'node', 'pi-1', 'pi-2', ...to], 64, /Unexpected "node pi-1 pi-2"/],
    [['issue', 'admin', 'anna', ...to], 64, /Unexpected "admin anna"/],
    [
      ['issue', 'server', 'x', '--days', '0', ...to],
      64,
      /Invalid value "0" for --days: use a whole number from 1 to 99999/,
    ],
    [['issue', 'server', 'x', ...to], 1, /There is no authority in .*none: 'bramble-certs authority FOLDER' makes one/],
    [['show', join(folder, 'empty.crt')], 1, /There is no certificate in .*empty.crt/],
    [['show', join(folder, 'bad.crt')], 1, /A certificate in bad.crt cannot be read/],
    [['hash', join(folder, 'empty.crt')], 1, /no authority's certificate/],
  ] as const) {
    const printed = await type(...argv)
    t.equal(printed.code, code, argv.join(' '))
    t.match(printed.stderr, expected)
  }
  t.same((await readdir(folder)).sort(), ['bad.crt', 'empty.crt'], 'nothing was made')
})
