/** The paths of fields in definitions: those of columns are a part of JSONPath, those of replicas and selectors have names only. */
import { fieldOf, isObject, type JsonObject } from '../../../api/text/json.ts'

export type ObjectPath = {
  /** The first value at the path; undefined: there is none. */
  first(object: JsonObject): unknown
}

type Step =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'every' }
  /** The items of which the field at this path equals the text. */
  | { readonly kind: 'filter'; readonly path: readonly string[]; readonly text: string }

const longestPath = 1_024
/** Values that are looked at for one cell. */
const mostValues = 1_000

/**
 * `.a.b`, `.a['b.c']`, `.a[0]`, `.a[*]`, `.a[?(@.type=="Ready")].status`, and `\.` in a name; undefined: another form. Kubernetes
 * accepts all of JSONPath.
 */
export function parseObjectPath(path: string): ObjectPath | undefined {
  const steps = path.length > longestPath ? undefined : stepsOf(path)
  return steps && { first: (object) => valuesAt(object, steps)[0] }
}

const forms = {
  name: /^\.((?:[^.[\]\\]|\\.)+)/,
  quoted: /^\.?\[(?:'([^']*)'|"([^"]*)")\]/,
  index: /^\.?\[(-?\d{1,6})\]/,
  every: /^\.?\[\*\]|^\.\*/,
  filter: /^\.?\[\?\(\s*@((?:\.[^.\s=!<>()[\]]+)+)\s*==\s*(?:"([^"]*)"|'([^']*)'|(true|false|-?\d+))\s*\)\]/,
}

function stepsOf(path: string): readonly Step[] | undefined {
  const steps: Step[] = []
  for (let rest = path; rest !== ''; ) {
    const taken = stepAt(rest)
    if (taken === undefined) return undefined
    steps.push(taken.step)
    rest = rest.slice(taken.length)
  }
  return steps
}

function stepAt(rest: string): { readonly step: Step; readonly length: number } | undefined {
  const filter = forms.filter.exec(rest)
  if (filter !== null) {
    const [whole, names = '', double, single, plain] = filter
    return {
      step: { kind: 'filter', path: names.slice(1).split('.'), text: double ?? single ?? plain ?? '' },
      length: whole.length,
    }
  }
  const index = forms.index.exec(rest)
  if (index !== null) return { step: { kind: 'index', index: Number(index[1]) }, length: index[0].length }
  const every = forms.every.exec(rest)
  if (every !== null) return { step: { kind: 'every' }, length: every[0].length }
  const quoted = forms.quoted.exec(rest)
  if (quoted !== null) return { step: { kind: 'name', name: quoted[1] ?? quoted[2] ?? '' }, length: quoted[0].length }
  const name = forms.name.exec(rest)
  if (name === null) return undefined
  return { step: { kind: 'name', name: (name[1] ?? '').replace(/\\(.)/g, '$1') }, length: name[0].length }
}

function valuesAt(object: JsonObject, steps: readonly Step[]): readonly unknown[] {
  let values: readonly unknown[] = [object]
  for (const step of steps) values = values.flatMap((value) => stepFrom(value, step)).slice(0, mostValues)
  return values
}

function stepFrom(value: unknown, step: Step): readonly unknown[] {
  switch (step.kind) {
    case 'name':
      return isObject(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : []
    case 'index': {
      const item: unknown = Array.isArray(value) ? value.at(step.index) : undefined
      return item === undefined ? [] : [item]
    }
    case 'every':
      return membersOf(value)
    case 'filter':
      return membersOf(value).filter((item) => textAt(item, step.path) === step.text)
  }
}

function membersOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  return isObject(value) ? Object.values(value) : []
}

function textAt(value: unknown, names: readonly string[]): string | undefined {
  let at: unknown = value
  for (const name of names) at = isObject(at) ? fieldOf(at, name) : undefined
  return at === undefined || typeof at === 'object' ? undefined : String(at)
}

/** The names of `.spec.replicas`. */
export function namesOfPath(path: string): readonly string[] {
  return path.replace(/^\./, '').split('.')
}

export function valueAtNames(object: JsonObject, names: readonly string[]): unknown {
  let at: unknown = object
  for (const name of names) at = isObject(at) ? fieldOf(at, name) : undefined
  return at
}

/** The object with another value at this place. */
export function withValueAt(object: JsonObject, [name = '', ...rest]: readonly string[], value: unknown): JsonObject {
  const inner = fieldOf(object, name)
  return { ...object, [name]: rest.length === 0 ? value : withValueAt(isObject(inner) ? inner : {}, rest, value) }
}
