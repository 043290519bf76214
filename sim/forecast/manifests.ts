/** The manifests of a simulation: YAML files with one or more objects, folders of them, and objects of its own file. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { decode } from '../../api/decode.ts'
import type { AnyObject } from '../../api/meta.ts'
import { problemText } from '../../api/problem.ts'
import { anything, list, object, text } from '../../api/schema.ts'
import { isObject } from '../../api/text/json.ts'
import { messageOf } from '../../daemon/errors.ts'
import { ConfigurationError } from '../../daemon/process/configuration-file.ts'
import { readYaml } from '../../daemon/yaml/yaml-reader.ts'
import type { SimulationFile } from './simulation-file.ts'

/** `place`: its file and its number there, for messages. */
export type PlacedObject = { readonly place: string; readonly object: AnyObject }

const HeadSchema = object({ apiVersion: text, kind: text })
const NamedSchema = object({ metadata: object({ name: text }) })
const ListSchema = object({ items: list(anything) })
const mostObjects = 10_000

/** `path`: of the simulation's file, which the paths in it are relative to. Throws ConfigurationError. */
export async function readManifests(
  { manifests = [], objects = [] }: Pick<SimulationFile, 'manifests' | 'objects'>,
  path: string,
): Promise<readonly PlacedObject[]> {
  const own = objects.flatMap((one, i) => objectsIn(one, `${path}: objects[${i}]`))
  const files = (await Promise.all(manifests.map((name) => filesAt(resolve(dirname(path), name))))).flat()
  const read: PlacedObject[] = []
  for (const file of files) read.push(...(await objectsOfFile(file)))
  const all = [...read, ...own]
  if (all.length > mostObjects)
    throw new ConfigurationError(`The manifests of ${path} have ${all.length} objects: give at most ${mostObjects}`)
  return all
}

async function filesAt(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = (await readdir(path)).filter((name) => /\.(ya?ml|json)$/.test(name)).sort()
    if (names.length === 0) throw new ConfigurationError(`There is no .yaml, .yml or .json file in ${path}`)
    return names.map((name) => join(path, name))
  } catch (cause) {
    if (cause instanceof ConfigurationError) throw cause
    throw new ConfigurationError(`Cannot read the manifest ${path}`, [], { cause })
  }
}

async function objectsOfFile(file: string): Promise<readonly PlacedObject[]> {
  const source = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new ConfigurationError(`Cannot read the manifest ${file}`, [], { cause })
  })
  return documentsOf(source).flatMap((document, i) => {
    const place = `${file}: document ${i + 1}`
    return objectsIn(yamlIn(document, place), place)
  })
}

/** A line that begins with `---` ends a document, as for kubectl. */
function documentsOf(source: string): readonly string[] {
  return source.split(/^---(?:[ \t].*)?$/m)
}

function yamlIn(document: string, place: string): unknown {
  try {
    return readYaml(document)
  } catch (error) {
    throw new ConfigurationError(`${place} is not YAML:`, [messageOf(error)])
  }
}

/** Those of a List are meant one by one. An empty document has no object. */
function objectsIn(value: unknown, place: string): readonly PlacedObject[] {
  if (value === null || value === undefined) return []
  const head = checked(HeadSchema, value, place)
  if (head.kind === 'List' && head.apiVersion === 'v1')
    return checked(ListSchema, value, place).items.flatMap((item, i) => objectsIn(item, `${place}: items[${i}]`))
  checked(NamedSchema, value, place)
  if (!isObject(value)) return []
  return [{ place, object: { metadata: {}, ...value, ...head } }]
}

function checked<S extends Parameters<typeof decode>[0]>(schema: S, value: unknown, place: string) {
  const decoded = decode(schema, value)
  if (decoded.ok) return decoded.value
  throw new ConfigurationError(`${place} is not a manifest:`, decoded.problems.map(problemText))
}
