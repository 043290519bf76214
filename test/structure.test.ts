import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import ts from 'typescript'

/** Limits that keep the sources readable. A file, folder or function that reaches one is split by what it does. */
const maxFunctionLines = 100
const maxFolderFiles = 25

const root = fileURLToPath(new URL('../..', import.meta.url))
const folders = ['api', 'daemon', 'certs', 'agent', 'broker-controller', 'dashboard', 'scripts', 'bench', 'sim']
const sources = folders
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  .filter((path) => path.endsWith('.ts') && !/node_modules|\.test\.ts$|\/testing\//.test(path))
const parsed = sources.map((path) => ({
  path,
  file: ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest, true),
}))

test(`no function is longer than ${maxFunctionLines} lines`, async (t) => {
  t.ok(sources.length > 300, `${sources.length} source files`)
  t.same(parsed.flatMap(({ path, file }) => longFunctions(file).map((name) => `${path}: ${name}`)).sort(), [])
})

test(`no folder holds more than ${maxFolderFiles} source files`, async (t) => {
  const counts = grouped(sources, (path) => dirname(path))
  t.same(
    [...counts]
      .filter(([, { length }]) => length > maxFolderFiles)
      .map(([folder, { length }]) => `${folder}: ${length}`),
    [],
  )
})

test('no name is exported by two files', async (t) => {
  const exported = parsed
    .filter(({ path }) => !/^(scripts|bench)\//.test(path))
    .flatMap(({ path, file }) => [...new Set(exportedNames(file))].map((name) => ({ name, path })))
  t.ok(exported.length > 500, `${exported.length} exported names`)
  const byName = grouped(exported, ({ name }) => name)
  t.same(
    [...byName]
      .filter(([, { length }]) => length > 1)
      .map(([name, from]) => `${name}: ${from.map(({ path }) => path).join(', ')}`),
    [],
  )
})

function longFunctions(file: ts.SourceFile): string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    const lines = lineOf(file, node.end) - lineOf(file, node.getStart(file)) + 1
    if (ts.isFunctionLike(node) && lines > maxFunctionLines) {
      const name = node.name?.getText(file) ?? `function in line ${lineOf(file, node.getStart(file))}`
      found.push(name)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

function lineOf(file: ts.SourceFile, position: number): number {
  return file.getLineAndCharacterOfPosition(position).line + 1
}

/** Names that the file declares and exports; names that it passes on from another file are not counted. */
function exportedNames(file: ts.SourceFile): string[] {
  return file.statements.flatMap((statement) => {
    const isExported =
      ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
    if (!isExported) return []
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.flatMap(({ name }) => (ts.isIdentifier(name) ? [name.text] : []))
    }
    if (
      ts.isFunctionDeclaration(statement) ||
      ts.isClassDeclaration(statement) ||
      ts.isTypeAliasDeclaration(statement) ||
      ts.isInterfaceDeclaration(statement)
    ) {
      return statement.name === undefined ? [] : [statement.name.text]
    }
    return []
  })
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}
