/**
 * Bundles each program into one file under dist/bundle/, so that a Pi reads one file at start instead of three thousand,
 * and prints how large each is and what weighs most in it. Types are tsc's business; this only needs esbuild. Arguments
 * name the programs to bundle; without any: all. `--out=DIR` and `--version=V` are for packages. `--watch` bundles again after each change.
 */
import { chmod, copyFile, mkdir, readFile } from 'node:fs/promises'
import { createRequire, isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BuildOptions, build, context, type Metafile, type Plugin } from 'esbuild'
import { buildDashboard } from './build-dashboard.ts'

type Program = {
  readonly name: string
  readonly entry: string | { readonly package: string; readonly exports: readonly string[] }
  readonly launcher?: string
  readonly alias?: Readonly<Record<string, string>>
}

/**
 * What others would load and we never come to: of Docker's client ssh:// addresses, BuildKit sessions and build contexts; of the message bus its X11
 * address and the writing of XML; of the MQTT client the timers of browsers; of systeminformation all but board and processor.
 * The text of a program stays in memory, what is never called too.
 */
const neverUsed = {
  packages:
    /^(ssh2|cpu-features|@grpc\/grpc-js|@grpc\/proto-loader|protobufjs|x11|xmlbuilder|worker-timers|tar-fs|@balena\/dockerignore)$/,
  ofSystemInformation:
    /^\.\/(audio|battery|bluetooth|docker|filesystem|graphics|internet|network|printer|processes|usb|users|virtualbox|wifi)$/,
}
const dockerode = /node_modules\/dockerode\/lib\/util\.js$/
const systemInformation = /node_modules\/systeminformation\/lib\/index\.js$/

/** Copies of what Node.js has itself, for the programs that are to stay small. */
const inNode = { 'readable-stream': 'node:stream', string_decoder: 'node:string_decoder' }

/** Docker's client has it for BuildKit, which the agent never uses. */
const grpc = '@grpc/grpc-js'

const programs: readonly Program[] = [
  { name: 'bramble-agent', entry: 'agent/main.ts', launcher: 'scripts/bramble-agent', alias: inNode },
  { name: 'bramble-update', entry: 'agent/update.ts', launcher: 'scripts/bramble-update', alias: inNode },
  { name: 'bramble-controller', entry: 'broker-controller/main.ts', launcher: 'scripts/bramble-controller' },
  {
    name: 'bramble-controller-update',
    entry: 'broker-controller/update.ts',
    launcher: 'scripts/bramble-controller-update',
    alias: inNode,
  },
  { name: 'bramble-certs', entry: 'certs/cli.ts', launcher: 'scripts/bramble-certs' },
  { name: 'quickstart-probe', entry: 'scripts/quickstart-probe.ts' },
  // What the controller loads for a store in etcd, and only then: in its own file it would take memory of every controller.
  {
    name: 'bramble-grpc',
    entry: { package: grpc, exports: ['Client', 'Metadata', 'connectivityState', 'credentials'] },
  },
  // What `bramble-controller simulate` loads, with the agent in it.
  { name: 'bramble-simulator', entry: 'sim/forecast/simulate-file.ts', alias: inNode },
  { name: 'bramble-mqtt', entry: 'broker-controller/integrations/household/household-link.ts', alias: inNode },
]

/**
 * Module of the controller that contains the MQTT client: loaded with the first connection to a broker of the
 * household.
 */
const householdLink = /\/household-link\.ts$/

/** Native code cannot be bundled: it is found in node_modules beside us. */
const native = ['better-sqlite3', 'unix-dgram', 'usocket']

/** In an ES module `require`, `__filename` and `__dirname` are not given, and some packages want them. */
const commonJsNames = [
  `import { createRequire as $createRequire } from 'node:module'`,
  `import { fileURLToPath as $fileURLToPath } from 'node:url'`,
  'const require = $createRequire(import.meta.url)',
  'const __filename = $fileURLToPath(import.meta.url)',
  `const __dirname = $fileURLToPath(new URL('.', import.meta.url))`,
].join('\n')

const leaveOut: Plugin = {
  name: 'leave-out',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: neverUsed.packages }, ({ path, kind, importer }) => {
      if (path !== grpc || (kind !== 'dynamic-import' && importer !== '<stdin>'))
        return { path, namespace: 'never-used' }
      return kind === 'dynamic-import' ? { path: './bramble-grpc.mjs', external: true } : undefined
    })
    onResolve({ filter: householdLink }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: './bramble-mqtt.mjs', external: true } : undefined,
    )
    onResolve({ filter: neverUsed.ofSystemInformation }, ({ path, importer }) =>
      systemInformation.test(importer) ? { path, namespace: 'never-used' } : undefined,
    )
    // It packs build contexts, and Node.js keeps 2 MB for it.
    onResolve({ filter: /^zlib$/ }, ({ path, importer }) =>
      dockerode.test(importer) ? { path, namespace: 'never-used' } : undefined,
    )
    onLoad({ filter: /.*/, namespace: 'never-used' }, () => ({ contents: 'module.exports = {}' }))
  },
}

/**
 * Node's own modules by `require`: for an `import` statement Node reads every export of the module, and that loads what is behind
 * lazy ones. From Node 22 on `node:http` so brings undici and its WebAssembly: 7 MB resident, 4 of them anonymous.
 */
const builtinsByRequire: Plugin = {
  name: 'builtins-by-require',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^[a-z]/ }, ({ path, kind }) => {
      if (!isBuiltin(path)) return undefined
      return kind === 'require-call' ? { path, external: true } : { path, namespace: 'builtin' }
    })
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({ contents: builtinAsModule(path) }))
  },
}

/** Each export read once, and unused ones dropped: else each import of `node:fs` would make 100 getters. */
function builtinAsModule(path: string): string {
  const names = Object.keys(createRequire(import.meta.url)(path)).filter((name) => /^[a-z_]\w*$/i.test(name))
  const exports = names.map(
    (name, i) => `const x${i} = /* @__PURE__ */ (() => all.${name})(); export { x${i} as ${name} }`,
  )
  return [`const all = require(${JSON.stringify(path)})`, 'export default all', ...exports].join('\n')
}

// Compiled to dist/scripts/, or bundled there: the repository is two folders up either way.
const root = fileURLToPath(new URL('../..', import.meta.url))
const asked = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const out = option('out') ?? join(root, 'dist/bundle')
const release = option('version')
const watches = process.argv.includes('--watch')

await mkdir(out, { recursive: true })
for (const program of programs.filter(({ name }) => asked.length === 0 || asked.includes(name))) {
  if (watches) await bundleOnChange(program)
  else report(program.name, (await build(optionsOf(program))).metafile)
  if (program.launcher !== undefined) await place(join(root, program.launcher), join(out, program.name))
  if (program.name === 'bramble-controller') {
    const { files, bytes } = await buildDashboard(root, join(out, 'dashboard'))
    console.log(`dashboard: ${kilobytes(bytes)} in ${files} files, compressed`)
  }
}

async function bundleOnChange(program: Program): Promise<void> {
  const { name } = program
  const onEnd: Plugin = {
    name: 'on-end',
    setup: ({ onEnd }) =>
      onEnd(({ errors }) => console.log(`${name}: ${errors.length === 0 ? 'bundled' : 'not bundled'}`)),
  }
  const options = optionsOf(program)
  const watched = await context({ ...options, plugins: [...options.plugins, onEnd] })
  await watched.watch()
}

function optionsOf({ name, entry, alias = {} }: Program) {
  return {
    absWorkingDir: root,
    ...(typeof entry === 'string' ? { entryPoints: [entry] } : { stdin: reexporting(entry) }),
    outfile: join(out, `${name}.mjs`),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    banner: { js: commonJsNames },
    external: native,
    alias: { ...alias },
    plugins: [leaveOut, builtinsByRequire, ...(release === undefined ? [] : [calledVersion(release)])],
    metafile: true,
    logLevel: 'warning',
  } satisfies BuildOptions
}

/** The broker-controller names the package, so it is found from there. */
function reexporting({ package: name, exports }: { readonly package: string; readonly exports: readonly string[] }) {
  return { contents: `export { ${exports.join(', ')} } from '${name}'`, resolveDir: join(root, 'broker-controller') }
}

/** In place of the value in `daemon/process/version.ts`. */
function calledVersion(name: string): Plugin {
  return {
    name: 'version',
    setup({ onLoad }) {
      onLoad({ filter: /\/daemon\/process\/version\.ts$/ }, async ({ path }) => ({
        contents: (await readFile(path, 'utf8')).replace(/(version = )'[^']*'/, `$1'${name}'`),
        loader: 'ts',
      }))
    },
  }
}

function option(name: string): string | undefined {
  const prefix = `--${name}=`
  return process.argv.find((argument) => argument.startsWith(prefix))?.slice(prefix.length)
}

async function place(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  await copyFile(from, to)
  await chmod(to, 0o755)
}

function report(name: string, metafile: Metafile): void {
  const [output] = Object.values(metafile.outputs)
  if (output === undefined) return
  const weights = new Map<string, number>()
  for (const [path, { bytesInOutput }] of Object.entries(output.inputs)) {
    const owner = ownerOf(path)
    weights.set(owner, (weights.get(owner) ?? 0) + bytesInOutput)
  }
  const heaviest = [...weights].sort(([, a], [, b]) => b - a).slice(0, 5)
  const parts = heaviest.map(([owner, bytes]) => `${owner} ${kilobytes(bytes)}`).join(', ')
  console.log(`${name}: ${kilobytes(output.bytes)} (${parts}, …)`)
}

/** The package a file belongs to, or our own top folder. */
function ownerOf(path: string): string {
  const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? []
  return name ?? path.split('/', 1)[0] ?? path
}

function kilobytes(bytes: number): string {
  return `${Math.round(bytes / 1000)} kB`
}
